"""The closed form against brute force on tiny random models of many architectures."""

from ops.language_models.verify import verify_heads


def test_closed_form_is_brute_force(architecture, build_model, tiny_prompt):
    model = build_model(architecture)
    frame = verify_heads(model, tiny_prompt, taus=(1e-2, 1.0), layers={0, 1})
    assert frame["layer"].unique().to_list() == [0, 1]
    assert frame["positional_score"].null_count() == 0
    assert frame["difference"].max() < 1e-5
    assert frame["symbolic_score"].n_unique() > 4  # heads differ, so that agreement means something

"""The small picture on an asset's page is a well-formed SVG with every series at its values."""

import base64
from xml.etree import ElementTree

import pytest

from assets.preview import lines

SVG = "{http://www.w3.org/2000/svg}"


def drawn(markdown: str) -> ElementTree.Element:
    return ElementTree.fromstring(base64.b64decode(markdown.partition("base64,")[2].rstrip(")")))


def heights(polyline: ElementTree.Element) -> list[float]:
    return [float(point.split(",")[1]) for point in polyline.attrib["points"].split()]


def test_series_share_one_scale_and_carry_their_last_value():
    picture = drawn(lines("accuracy", {"hop 1": [0.0, 1.0, 1.0], "hop <2> & more": [0.0, 0.0, 0.5]}))
    first, second = (heights(line) for line in picture.findall(f"{SVG}polyline"))
    assert first[0] == second[0] == second[1] > second[2] > first[1] == first[2]
    assert (first[0] + first[1]) / 2 == pytest.approx(second[2], abs=0.1)
    texts = [text.text for text in picture.findall(f"{SVG}text")]
    assert {"hop 1: 1", "hop <2> & more: 0.5", "3 points, first to last", "0", "1"} <= set(texts)
    assert max(float(line.attrib["y1"]) for line in picture.findall(f"{SVG}line")) <= float(picture.attrib["height"])


def test_one_point_and_a_flat_series_are_drawn():
    (line,) = drawn(lines("loss", {"loss": [2.0]})).findall(f"{SVG}polyline")
    assert heights(line) == [pytest.approx(heights(line)[0])]


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [1.0], "b": [1.0, 2.0]}])
def test_series_that_cannot_share_an_axis_are_refused(series):
    with pytest.raises(ValueError, match="cannot share an axis"):
        lines("loss", series)

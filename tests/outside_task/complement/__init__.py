"""A task outside the project, as anyone might write one: the number task with complements of distances."""

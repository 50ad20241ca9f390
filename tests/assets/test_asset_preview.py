"""The small picture on an asset's page is well-formed SVG within Markdown."""

import base64
import re
from xml.etree import ElementTree

import pytest

from assets.preview import lines


def test_one_polyline_a_series_inside_the_frame():
    markdown = lines("loss & <more>", {"train": [3.0, 2.0, 1.0], "val": [3.0, 2.5, 2.0]})
    matched = re.fullmatch(r"!\[[^\]]*\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    assert matched
    svg = ElementTree.fromstring(base64.b64decode(matched.group(1)))
    drawn = svg.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(drawn) == 2
    for polyline in drawn:
        points = [tuple(map(float, point.split(","))) for point in polyline.attrib["points"].split()]
        assert len(points) == 3
        assert all(0 <= x <= float(svg.attrib["width"]) and 0 <= y <= float(svg.attrib["height"]) for x, y in points)
        assert points[0][1] < points[-1][1]


def test_a_constant_and_a_single_point_are_drawn():
    assert lines("flat", {"a": [1.0, 1.0]}).startswith("![flat]")
    assert lines("one", {"a": [1.0]}).startswith("![one]")


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [1.0], "b": [1.0, 2.0]}])
def test_series_that_cannot_share_an_axis_are_refused(series):
    with pytest.raises(ValueError, match="cannot share an axis"):
        lines("t", series)

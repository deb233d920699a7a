"""Tables, plots and pages of the scaling benchmark; measurements are never asserted."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from tests.bench.scale.__main__ import PARTS
from tests.bench.scale.curves import Curve, Growing, Series, as_json, described, from_json, table
from tests.bench.scale.plots import HEIGHT, WIDTH, _Axes, svg
from tests.bench.scale.publish import PAGE, with_tables

SVG = "{http://www.w3.org/2000/svg}"
TIMES = "\N{MULTIPLICATION SIGN}"


def curve(*series, **more):
    return Curve(
        name="calls",
        title="Calls & more",
        size="queues",
        unit="µs",
        made="In one run.",
        series=series,
        **more,
    )


SENDS = Series("send", [(10, 20.0), (1_000, 25.0), (10_000, 30.0)])
READS = Series("read", [(10, 21.0), (10_000, 31.0)])


def test_growth_is_last_cost_over_first():
    assert SENDS.growth == 1.5
    assert Series("none", [(1, 0.0), (2, 0.0)]).growth == 1.0


def test_table_has_column_per_size_and_gaps():
    assert table(curve(SENDS, READS)).splitlines()[2:] == [
        f"| send | 20 | 25 | 30 | 1.5 {TIMES} |",
        f"| read | 21 |  | 31 | 1.48 {TIMES} |",
    ]


def test_curve_round_trips_through_json():
    returned_curve = curve(SENDS, READS, notes=["one"], log_costs=True)

    assert as_json(from_json(as_json(returned_curve))) == as_json(returned_curve)


def test_series_grow_by_one_point_per_size():
    lines = Growing()
    lines.add(1, send=2.0, of_the_store=1.0)
    lines.add(10, send=3.0)

    [sends, store] = lines.series()

    assert (sends.label, sends.points) == ("send", [(1, 2.0), (10, 3.0)])
    assert (store.label, store.points) == ("of the store", [(1, 1.0)])


@pytest.mark.parametrize("log_costs", [False, True])
def test_plot_has_one_line_per_series_within_frame(log_costs):
    picture = ET.fromstring(svg(curve(SENDS, READS, log_costs=log_costs)))

    lines = picture.findall(f"{SVG}polyline")
    assert len(lines) == 2
    for line in lines:
        places = [tuple(map(float, place.split(","))) for place in line.attrib["points"].split()]
        assert all(0 < x < WIDTH and 0 < y < HEIGHT for x, y in places)
        assert all(left[0] < right[0] for left, right in pairwise(places))


@pytest.mark.parametrize("most", [0.011, 0.93, 1.0, 7.7, 9.99, 33.0, 480.0, 10_000.0])
def test_plot_has_two_to_seven_grid_lines(most):
    marks = _Axes(curve(Series("send", [(1, most / 3), (10, most)]))).marks()

    assert 2 <= len(marks) <= 7
    assert marks[-1] <= 1.1 * most


def test_labels_of_converging_lines_do_not_overlap():
    lines = [Series(f"line {nth}", [(1, 1.0), (10, 5.0)]) for nth in range(4)]

    picture = ET.fromstring(svg(curve(*lines)))
    labels = [
        text for text in picture.findall(f"{SVG}text") if (text.text or "").startswith("line")
    ]
    heights = sorted(float(text.attrib["y"]) for text in labels)

    assert all(below - above >= 12 for above, below in pairwise(heights))


def test_curve_of_zeros_is_drawn():
    assert "polyline" in svg(curve(Series("none", [(1, 0.0), (10, 0.0)])))


def test_page_is_updated_only_at_marks_of_given_curves():
    page = "before\n<!-- curve: calls -->\nold\n<!-- end -->\n<!-- curve: other -->\nkept\n<!-- end -->\n"

    written = with_tables(page, [curve(SENDS)], "today")

    assert "old" not in written
    assert f"| send | 20 | 25 | 30 | 1.5 {TIMES} |" in written
    assert "![Calls & more](images/performance/calls.svg)" in written
    assert "<!-- curve: other -->\nkept\n<!-- end -->" in written
    assert with_tables(written, [curve(SENDS)], "today") == written


def test_unmeasured_curve_states_reason():
    assert "Not measured: no disk" in described(curve(trouble="no disk"))


def test_documentation_links_every_plot():
    linked = re.findall(r"!\[.*\]\(images/performance/(.*)\)", PAGE.read_text())
    files = {path.name: path for path in (PAGE.parent / "images" / "performance").iterdir()}

    assert len(linked) > len(PARTS)
    assert sorted(linked) == sorted(files)
    for path in files.values():
        assert ET.parse(path).getroot().tag == f"{SVG}svg"

"""Pictures of marginals."""

import pytest

from hylift.errors import UnsupportedError
from hylift.graph import FactorGraph, boolean, interval, real
from hylift.inference import infer
from hylift.plot import plot_marginals
from hylift.potentials import ConditionalQuadratic

GRAPH = FactorGraph.build(
    {"on": boolean, "x": real, "seen": real, "z": interval(0, 1)},
    [(ConditionalQuadratic.gaussian([0.0], [[1.0]]), [["x"], ["seen"]])],
).observe({"seen": 0.5})


def test_every_kind_of_marginal_has_its_panel(tmp_path) -> None:
    path = tmp_path / "marginals.png"

    panels = plot_marginals(infer(GRAPH), ["on", "x", "seen", "z"], path=path)

    assert [panel.get_title() for panel in panels] == ["on", "x", "seen", "z"]
    assert path.read_bytes().startswith(b"\x89PNG")


def test_too_many_panels_are_refused() -> None:
    graph = FactorGraph.build({f"b{i}": boolean for i in range(30)}, [])

    with pytest.raises(UnsupportedError, match="a figure shows 1 to 24 marginals, not 30"):
        plot_marginals(infer(graph))


def test_a_figure_of_another_kind_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"a\.xyz: a figure's name ends in \.png, \.pdf"):
        plot_marginals(infer(GRAPH), ["on"], path="a.xyz")

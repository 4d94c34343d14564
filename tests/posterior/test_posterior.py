"""Questions to a posterior: single marginals, tables, patterns, and the MAP assignment."""

import numpy as np
import pyarrow as pa
import pytest

import zoo
from hylift.errors import UnknownNameError, UnsupportedError
from hylift.graph import FactorGraph, Soft, boolean, categorical, interval, real
from hylift.inference import infer
from hylift.posterior import Categorical, GaussianMixture, PiecewiseDensity, PointMass, Posterior
from hylift.posterior.answers import LogPartition
from hylift.potentials import ConditionalQuadratic, Table

COLUMNS = ["atom", "mean", "std", "mode", "q05", "q50", "q95", "states", "probs", "verdict"]


def mixed_graph() -> FactorGraph:
    """All families of marginals: states, mixtures, numerical densities and certainties."""
    graph = FactorGraph.build(
        {
            "wet": boolean,
            "color": categorical(["red", "green", "blue"]),
            "x": real,
            "share": interval(0, 1),
            "seen": real,
            "dry": boolean,
        },
        [
            (Table.from_values([[0.1, 0.2, 0.3], [0.2, 0.1, 0.1]]), ["wet", "color"]),
            (ConditionalQuadratic.gaussian([[0.0], [4.0]], [[[1.0]], [[2.0]]]), ["wet", "x"]),
            (ConditionalQuadratic.shared([[0.0]], [1.0]), ["share"]),
            (ConditionalQuadratic.linear_gaussian([1.0], 3.0), ["seen", "x"]),
            (Table.from_values([[0.9, 0.1], [0.2, 0.8]]), ["dry", "wet"]),
        ],
    )
    return graph.observe({"seen": 1.5, "dry": False})


@pytest.fixture(scope="module")
def posterior() -> Posterior:
    return infer(mixed_graph())


def test_each_variable_has_a_marginal_of_its_family(posterior: Posterior) -> None:
    families = {
        "wet": Categorical,
        "color": Categorical,
        "x": GaussianMixture,
        "share": PiecewiseDensity,
        "seen": PointMass,
        "dry": Categorical,
    }

    for atom, family in families.items():
        assert isinstance(posterior.marginal(atom), family), atom


def test_marginals_of_states_have_labels(posterior: Posterior) -> None:
    color = posterior.marginal("color")

    assert color.states == ("red", "green", "blue")
    assert color.probs.sum() == pytest.approx(1.0)
    assert posterior.marginal("dry").prob("false") == 1.0


def test_an_unknown_atom_suggests_the_closest(posterior: Posterior) -> None:
    with pytest.raises(UnknownNameError) as refusal:
        posterior.marginal("colour")

    assert str(refusal.value) == "there is no variable 'colour'. Did you mean 'color'?"
    with pytest.raises(UnknownNameError, match="there is no variable 'colour'"):
        posterior.marginals(["wet", "colour"])


def test_the_table_of_marginals_has_a_fixed_schema(posterior: Posterior) -> None:
    table = posterior.marginals()

    assert table.column_names == COLUMNS
    assert table.schema.field("atom").type == pa.string()
    assert all(table.schema.field(name).type == pa.float64() for name in COLUMNS[1:7])
    assert table.schema.field("states").type == pa.list_(pa.string())
    assert table.schema.field("probs").type == pa.list_(pa.float64())


def test_the_table_of_marginals_has_the_values_of_the_marginals(posterior: Posterior) -> None:
    rows = {row["atom"]: row for row in posterior.marginals(observed=True).to_pylist()}

    assert list(rows) == ["wet", "color", "x", "share", "seen", "dry"]
    for atom in ("wet", "color", "dry"):
        marginal = posterior.marginal(atom)
        assert rows[atom]["states"] == list(marginal.states)
        assert rows[atom]["probs"] == marginal.probs.tolist()
        assert [rows[atom][name] for name in COLUMNS[1:7]] == [None] * 6
    for atom in ("x", "share", "seen"):
        marginal = posterior.marginal(atom)
        assert rows[atom]["mean"] == pytest.approx(marginal.mean)
        assert rows[atom]["std"] == pytest.approx(marginal.std)
        assert "var" not in rows[atom]
        assert rows[atom]["mode"] == pytest.approx(marginal.mode)
        assert rows[atom]["q50"] == pytest.approx(marginal.quantile(0.5))
        assert rows[atom]["q05"] == pytest.approx(marginal.quantile(0.05))
        assert rows[atom]["q95"] == pytest.approx(marginal.quantile(0.95))
        assert rows[atom]["states"] is None
        assert rows[atom]["probs"] is None


def test_observed_variables_are_left_out_unless_asked_for(posterior: Posterior) -> None:
    assert posterior.marginals()["atom"].to_pylist() == ["wet", "color", "x", "share"]
    assert posterior.marginals(observed=True).num_rows == 6
    assert posterior.marginals("seen")["mean"].to_pylist() == [1.5]
    assert posterior.marginals("seen")["std"].to_pylist() == [0.0]


def test_what_was_measured_with_error_is_not_observed() -> None:
    graph = FactorGraph.build({"x": real}, [(ConditionalQuadratic.square(-0.5), ["x"])])

    posterior = infer(graph.observe({"x": Soft(2.0, 1.0)}))

    assert posterior.observed.tolist() == [False]
    assert posterior.marginals()["mean"].to_pylist() == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("atoms", "count"),
    [
        ("posA(*)", 2),
        ("pos?(*)", 5),
        ("attractedTo(*,*)", 6),
        ("attractedTo(*,b1)", 2),
        ("*InBox(*,x0)", 5),
        (["posA(*)", "posB(b1)"], 3),
        (["posA(*)", "posA(a0)"], 2),
        ([], 0),
        (None, 21),
    ],
)
def test_patterns_select_atoms(atoms: object, count: int) -> None:
    posterior = infer(zoo.toy_hybrid_mln())

    assert posterior.marginals(atoms).num_rows == count


def test_a_pattern_without_a_match_is_an_error(posterior: Posterior) -> None:
    with pytest.raises(UnknownNameError, match=r"no variable matches 'pos\*'"):
        posterior.marginals("pos*")


def test_marginals_become_a_pandas_frame(posterior: Posterior) -> None:
    pytest.importorskip("pandas")

    frame = posterior.marginals().to_pandas().set_index("atom")

    assert frame.loc["x", "mean"] == pytest.approx(posterior.marginal("x").mean)
    assert np.isnan(frame.loc["wet", "mean"])
    assert list(frame.loc["color", "probs"]) == posterior.marginal("color").probs.tolist()


def test_marginals_become_a_polars_frame(posterior: Posterior) -> None:
    polars = pytest.importorskip("polars")

    frame = polars.from_arrow(posterior.marginals())

    assert frame.columns == COLUMNS
    assert frame.filter(polars.col("atom") == "x")["mean"][0] == pytest.approx(
        posterior.marginal("x").mean
    )
    assert frame["states"][0].to_list() == ["false", "true"]


def test_a_posterior_says_what_it_is(posterior: Posterior) -> None:
    log_z = posterior.log_partition

    assert repr(posterior) == (
        f"Posterior(4 hidden variables, method exact, log Z = {log_z.value:.6g} (exact), "
        "certified; 2 notes, above all: Exact inference was chosen, because it is cheap here.)"
    )
    assert float(log_z) == log_z.value
    assert posterior.solution.method == "exact"
    assert posterior.solution.objective == -log_z.value


# MAP assignments


def test_the_map_assignment_has_labels_and_numbers() -> None:
    graph = FactorGraph.build(
        {"wet": boolean, "color": categorical(["red", "green"]), "x": real, "seen": boolean},
        [
            (Table.shared([[0.0, 1.0], [2.0, 0.5]]), ["wet", "color"]),
            (ConditionalQuadratic.squared_distance(1.0, [1.0], 2.5).times([1, 2]), ["wet", "x"]),
            (Table.shared([0.0, 0.25]), ["seen"]),
        ],
    ).observe({"seen": True})

    best = infer(graph).map()

    assert best.to_dict() == {"wet": "true", "color": "red", "x": pytest.approx(2.5)}
    assert best["seen"] == "true"
    assert best.energy == pytest.approx(-2.25)
    assert best.kind == "exact"
    with pytest.raises(UnknownNameError, match=r"Did you mean 'wet'\?"):
        best["wte"]


def test_the_map_assignment_becomes_a_table() -> None:
    graph = zoo.switching_regime().observe({"x(t1)": 0.25})

    table = infer(graph).map().to_arrow()

    assert table.column_names == ["atom", "state", "value"]
    assert [field.type for field in table.schema] == [pa.string(), pa.string(), pa.float64()]
    rows = {row["atom"]: row for row in table.to_pylist()}
    assert "x(t1)" not in rows
    assert rows["regime(t0)"]["state"] in ("calm", "storm")
    assert rows["regime(t0)"]["value"] is None
    assert rows["x(t0)"]["state"] is None
    assert rows["x(t0)"]["value"] == pytest.approx(infer(graph).map()["x(t0)"])


def test_a_map_assignment_of_reals_becomes_a_table() -> None:
    graph = FactorGraph.build({"x": real}, [(ConditionalQuadratic.square(-1.0), ["x"])])

    table = infer(graph).map().to_arrow()

    assert table.to_pylist() == [{"atom": "x", "state": None, "value": 0.0}]


def test_the_map_assignment_is_found_when_asked_for() -> None:
    graph = zoo.hard_clause()

    later, at_once = infer(graph, tasks=["logz"]), infer(graph, tasks=["map"])

    assert later.assignment is None
    assert later.map().energy == at_once.map().energy == 0.0


def test_marginals_that_were_not_asked_for_are_an_error() -> None:
    posterior = infer(zoo.hard_clause(), tasks=["logz"])

    with pytest.raises(UnsupportedError) as refusal:
        posterior.marginal("H")

    assert str(refusal.value) == (
        "this posterior has no marginals: run infer(…) with 'marginals' among the tasks, and with "
        "a method that finds them"
    )


def test_marginals_come_in_the_order_asked_for() -> None:
    graph = FactorGraph.build(dict.fromkeys("abc", boolean), [])

    table = infer(graph).marginals(["c", "a"])

    assert table["atom"].to_pylist() == ["c", "a"]


def test_bounds_on_log_z_follow_from_its_kind() -> None:
    interval = LogPartition.between(0.1, 0.7)

    assert interval.kind == "interval"
    assert (interval.lower <= 0.1, interval.upper >= 0.7) == (True, True)
    assert interval.shown(6) == "0.1 to 0.7"
    exact = LogPartition(2.0, "exact", 0.5)
    assert (exact.lower, exact.upper) == (1.5, 2.5)
    assert LogPartition(2.0, "lower bound").upper == np.inf
    assert LogPartition(2.0, "upper bound").lower == -np.inf
    assert LogPartition(2.0, "estimate", 0.1).lower == -np.inf
    assert LogPartition(2.0, "estimate", 0.1).upper == np.inf

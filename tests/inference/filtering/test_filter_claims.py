"""What a filter refuses, and how it shows what it found."""

import numpy as np
import pandas as pd
import pytest

import hylift as hl
from hylift.errors import (
    DivergentModelError,
    ImpossibleEvidenceError,
    ModelError,
    UnknownNameError,
    UnsupportedError,
)
from inference.filtering.gaussian_chains import CHAIN, observed, wells, with_parameters


def two(first=hl.real, second=hl.real) -> hl.FactorGraph:
    """Reals a and b, b after a."""
    return hl.FactorGraph.build(
        {"a": first, "b": second},
        [
            (hl.ConditionalQuadratic.gaussian([0.0], 1.0), ["a"]),
            (hl.ConditionalQuadratic.linear_gaussian([1.0], 1.0), ["b", "a"]),
        ],
    )


def test_tables_have_a_row_per_real_and_per_measurement():
    graph = observed(CHAIN, o={0: 1.0, 2: 0.5})

    found = hl.kalman_filter(graph, "t")

    table, seen = found.table(), found.predictions()
    assert table.column_names == [
        "atom", "time", "mean", "sd", "predicted_mean", "predicted_sd",
    ]  # fmt: skip
    assert table["atom"].to_pylist()[:2] == ["x(0)", "x(1)"]
    assert np.allclose(table["sd"], np.sqrt(found.var), atol=0)
    assert seen.column_names == ["atom", "time", "value", "mean", "sd", "log_density"]
    assert seen["atom"].to_pylist() == ["o(0)", "o(2)"]
    assert seen["value"].to_pylist() == [1.0, 0.5]
    # One measurement a time: its log-density is what the time adds to log Z.
    assert np.allclose(seen["log_density"], found.log_likelihood[[0, 2]], atol=1e-12)
    assert found.log_likelihood[1] == pytest.approx(0.0, abs=1e-12)


def test_tables_of_one_predicate_have_a_column_per_argument():
    model = hl.parse("""
        level(well, month): real
        reading(well, month): real
        bias(well): real
        normal(level(w, t) | 0, 4)  where t = 0
        normal(level(w, t+1) | level(w, t), 1)
        normal(bias(w) | 0, 1)
        normal(reading(w, t) | level(w, t) + bias(w), 1)
    """)
    frame = pd.DataFrame({"well": [3, 3, 12], "month": [0, 1, 2], "value": [1.0, 2.0, 3.0]})
    graph = hl.ground(model, {"reading": frame})

    found = hl.kalman_filter(graph, "month")

    table, seen = found.table("level").to_pandas(), found.predictions("reading").to_pandas()
    assert table.columns.to_list() == [
        "well", "month", "time", "mean", "sd", "predicted_mean", "predicted_sd",
    ]  # fmt: skip
    assert table["month"].to_list() == table["time"].to_list() == [0, 1, 2, 0, 1, 2]
    assert seen.columns.to_list() == ["well", "month", "time", "value", "mean", "sd", "log_density"]
    assert frame.merge(seen)["value"].to_list() == [1.0, 2.0, 3.0]
    everything = found.table().to_pandas().set_index("atom")
    assert table["mean"].to_list()[4] == everything["mean"]["level(12,1)"]
    assert len(found.table("reading")) == 3
    assert len(found.predictions("bias")) == 0
    hidden = hl.kalman_filter(graph.condition(), "month")
    assert hidden.table("level").schema.equals(found.table("level").schema)
    with pytest.raises(UnknownNameError, match=r"no predicate 'levl'\. Did you mean 'level'"):
        found.table("levl")


def test_times_are_whole_numbers_in_all_frames():
    found = hl.kalman_filter(wells(), "month")

    frames = [found.table(), found.table("trend"), found.table("season"), found.predictions()]

    assert {str(table.to_pandas()["time"].dtype) for table in frames} == {"Int64"}
    assert {str(table["time"].type) for table in frames} == {"int64"}
    assert found.table("season").to_pandas()["time"].isna().all()


def test_an_argument_that_is_called_time_is_the_time_in_a_table_of_its_predicate():
    days = pd.to_datetime(["2024-03-01", "2024-03-05"])
    model = hl.parse("""
        x(time): real
        normal(x(t) | 0, 1)
        normal(x(t+1) | x(t), 1)
    """)

    found = hl.kalman_filter(hl.ground(model, {"time": pd.DataFrame({"time": days})}), "time")

    assert found.table("x").to_pandas()["time"].to_list() == days.to_list()
    assert found.table()["time"].to_pylist() == [0, 1]


def test_a_filter_says_what_it_found_in_a_line():
    found = hl.kalman_filter(observed(CHAIN, o={0: 1.0}), "t")

    assert repr(found) == "Filtered(15 reals over 8 times, 1 measurement, log Z -1.60075)"


def test_reals_without_a_time_have_none_in_the_table():
    found = hl.kalman_filter(wells(), "month")

    time = dict(
        zip(found.table()["atom"].to_pylist(), found.table()["time"].to_pylist(), strict=True)
    )
    assert time["season(1)"] is None
    assert time["trend(4)"] == 4


def test_progress_is_told():
    shares = []

    hl.kalman_filter(wells(), "month", progress=lambda share, what: shares.append((share, what)))

    assert shares[0] == (0.0, "absorbing evidence")
    assert shares[-1] == (1.0, "filtered")


def test_words_are_times_in_the_order_of_their_type():
    model = hl.parse(
        CHAIN.replace("{0, ..., 7}", "{Spring, Summer, Autumn}").replace("k = 0", "k = Spring")
    )
    graph = hl.ground(model).observe({"o(Spring)": 1.0, "o(Autumn)": 2.0})

    found = hl.kalman_filter(graph, "t")

    assert found.times.tolist() == [0, 1, 2]
    exact = hl.infer(graph, hl.Exact()).log_partition.value
    assert found.log_partition[-1] == pytest.approx(exact, abs=1e-12)


def test_whole_numbers_are_times_as_they_stand():
    model = hl.parse(CHAIN.replace("{0, ..., 7}", "{1990, ..., 1993}").replace("k = 0", "k = 1990"))

    found = hl.kalman_filter(hl.ground(model), "t")

    assert found.times.tolist() == [1990, 1991, 1992, 1993]


def test_an_atom_of_two_times_is_of_the_later_one():
    model = hl.parse("""
        t = {0, 1, 2}
        change(t, t): real
        x(t): real
        normal(x(k) | 0, 1)  where k = 0
        normal(change(k, k+1) | 0, 0.5)
        normal(x(k+1) | x(k) + change(k, k+1), 1)
    """)

    found = hl.kalman_filter(hl.ground(model), "t")

    time = dict(zip(found.table()["atom"].to_pylist(), found.time.tolist(), strict=True))
    assert time["change(0,1)"] == 1
    assert time["change(1,2)"] == 2


def test_hidden_variables_of_a_conditioned_graph_keep_their_times():
    graph = observed(CHAIN, o={0: 1.0, 2: 0.5})

    whole, hidden = hl.kalman_filter(graph, "t"), hl.kalman_filter(graph.condition(), "t")

    assert np.array_equal(whole.time, hidden.time)
    # Evidence that is absorbed in factors is of the time of what they are left with.
    assert np.allclose(whole.mean, hidden.mean, atol=1e-12)


def test_factors_that_stand_for_several_count_so_often():
    once = two().observe({"b": 1.0})
    group = once.groups[1]
    double = hl.FactorGroup(group.potential, group.scope, multiplicity=np.array([2.0]))
    graph = hl.FactorGraph(once.variables, (once.groups[0], double), once.evidence)

    found = hl.kalman_filter(graph, np.array([0, 1]))

    exact = hl.infer(graph, hl.Exact())
    assert found.log_partition[-1] == pytest.approx(exact.log_partition.value, abs=1e-12)


def test_a_graph_that_is_all_observed_has_its_log_density_for_log_z():
    graph = two().observe({"a": 0.5, "b": 1.0})

    found = hl.kalman_filter(graph, np.array([0, 1]))

    assert found.log_partition[-1] == pytest.approx(graph.log_density(np.array([0.5, 1.0])))
    assert len(found.table()) == 0


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ("mont", r"no predicate has an argument 'mont'\. Did you mean 'month'\?"),
        ("hour", r"no predicate has an argument 'hour'\. There are 'well', 'month' and 'year'\."),
    ],
)
def test_an_argument_that_no_predicate_has_is_an_error_that_helps(argument, text):
    with pytest.raises(UnknownNameError, match=text):
        hl.kalman_filter(wells(), argument)


def test_variables_that_are_no_atoms_need_an_array_of_times():
    with pytest.raises(UnknownNameError, match="not atoms with named arguments: pass an array"):
        hl.kalman_filter(two(), "month")


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (
            np.array([0.0, 1.0]),
            r"an integer for each of 2 variables, not an array of float64 of shape \(2,",
        ),
        (np.array([0, 1, 2]), r"not an array of int64 of shape \(3,\)"),
        (np.array([0, -2]), "'b' has time -2: a time must be non-negative, or -1 for a variable"),
        (np.array([-1, -1]), "no variable has a time"),
    ],
)
def test_an_array_that_holds_no_times_is_an_error(time, text):
    with pytest.raises(ModelError, match=text):
        hl.kalman_filter(two(), time)


def test_a_graph_without_an_atom_of_that_argument_has_no_times():
    names = hl.Names((hl.Atoms("x", (["a", "b"],)), hl.Atoms("y", ([],), labels=("t",))))
    graph = hl.FactorGraph(hl.Variables.uniform(hl.real, 2, names), two().groups)

    with pytest.raises(ModelError, match="no variable has a time"):
        hl.kalman_filter(graph, "t")


def test_words_of_different_types_have_no_order():
    names = hl.Names(
        (hl.Atoms("x", (["old"],), labels=("t",)), hl.Atoms("y", (["new"],), labels=("t",)))
    )
    graph = hl.FactorGraph(hl.Variables.uniform(hl.real, 2, names), two().groups)

    with pytest.raises(
        ModelError, match="constants of argument 't' are not non-negative integers, and not"
    ):
        hl.kalman_filter(graph, "t")


def test_hidden_discrete_variables_are_refused():
    graph = hl.FactorGraph.build({"on": hl.boolean}, [(hl.Table.shared([0.0, 1.0]), ["on"])])

    with pytest.raises(
        UnsupportedError, match="a Kalman filter is for reals, and 'on' is discrete"
    ):
        hl.kalman_filter(graph, np.array([0]))


def test_functions_of_hidden_reals_are_refused():
    wave = hl.Function(lambda u: -(u**4), 0, 1)
    graph = hl.FactorGraph.build({"x": hl.real}, [(wave, ["x"])])

    with pytest.raises(UnsupportedError, match="is a function of 'x': a Kalman filter needs quad"):
        hl.kalman_filter(graph, np.array([0]))


def test_a_parameter_that_nobody_observed_is_refused():
    graph = with_parameters()
    seen = graph.evidence
    keep = seen.variable != graph.variables.names.ids(["a(w1)"])[0]
    evidence = hl.Evidence.of(seen.variable[keep], seen.value[keep], seen.var[keep])
    hidden = hl.FactorGraph(graph.variables, graph.groups, evidence)

    with pytest.raises(
        UnsupportedError,
        match=r"factor \d+ of group '.*normal\(x\(w, k.* is a function of 'x\(w1,.*': a Kalman "
        r"filter needs quadratics\. Observe what keeps it from being one, or use infer with EPBP",
    ):
        hl.kalman_filter(hidden, "t")


def test_lifted_graphs_are_refused():
    variables = two().variables
    lifted = hl.Variables(
        variables.domains, variables.domain_id, variables.names, np.array([1.0, 3.0])
    )

    with pytest.raises(UnsupportedError, match="ground graph, and 'b' stands for several"):
        hl.kalman_filter(hl.FactorGraph(lifted, two().groups), np.array([0, 1]))


def test_a_model_is_no_graph():
    with pytest.raises(UnsupportedError, match=r"needs a FactorGraph, .* of type 'Model'"):
        hl.kalman_filter(hl.parse(CHAIN), "t")


def test_bounds_that_matter_are_refused_and_wide_ones_are_not():
    wide = hl.kalman_filter(two(hl.interval(-50, 50)), np.array([0, 1]))

    assert wide.var.tolist() == pytest.approx([1.0, 2.0])
    with pytest.raises(UnsupportedError, match=r"those of 'a' matter: 0\.32 of its density lies"):
        hl.kalman_filter(two(hl.interval(-1, 1)), np.array([0, 1]))


def test_reals_that_nothing_holds_in_time_are_refused():
    linear = hl.ConditionalQuadratic.linear_gaussian([1.0], 1.0)
    graph = hl.FactorGraph.build({"a": hl.real, "b": hl.real}, [(linear, ["b", "a"])])
    held_later = graph.observe({"b": 1.0})

    with pytest.raises(
        DivergentModelError,
        match=r"up to time 3, .* improper in 'a' \(it is only coupled to 'b', which is improper",
    ):
        hl.kalman_filter(graph, np.array([3, 3]))
    with pytest.raises(
        DivergentModelError, match=r"improper in 'a', .*: add a prior such as 'normal\(a"
    ):
        hl.kalman_filter(held_later, np.array([0, 1]))


def test_a_model_that_is_no_distribution_up_to_some_time_is_refused():
    graph = hl.FactorGraph.build(
        {"a": hl.real, "b": hl.real},
        [
            (hl.ConditionalQuadratic.square(-1.0), [["a"], ["b"]]),
            (hl.ConditionalQuadratic.product(2.5), ["a", "b"]),
        ],
    )

    with pytest.raises(
        DivergentModelError,
        match="up to time 1 and without evidence of that time, the density is improper in",
    ):
        hl.kalman_filter(graph, np.array([0, 1]))


def test_impossible_evidence_is_refused():
    never = hl.ConditionalQuadratic(
        np.full((1, 2, 1, 1), -1.0), np.zeros((1, 2, 1)), np.array([[0.0, -np.inf]])
    )
    graph = hl.FactorGraph.build({"on": hl.boolean, "x": hl.real}, [(never, ["on", "x"])])

    with pytest.raises(ImpossibleEvidenceError, match="no value of 'x' is possible any more"):
        hl.kalman_filter(graph.observe({"on": True}), np.array([0, 0]))


def test_a_variance_that_rounding_hides_is_refused():
    wide = (hl.ConditionalQuadratic.gaussian([0.0], 1e16), ["a"])
    tie = (hl.ConditionalQuadratic.linear_gaussian([1.0], 1.0), ["b", "a"])
    graph = hl.FactorGraph.build(dict.fromkeys("ab", hl.real), [wide, tie])

    with pytest.raises(
        UnsupportedError,
        match="'b' is so vague at first, and so sure once the evidence of time 0 is known, that r",
    ):
        hl.kalman_filter(graph.observe({"a": hl.Soft(1.0, 1e-3)}), np.array([0, 0]))


def test_factors_without_slots_count():
    graph = hl.FactorGraph.build(
        {"x": hl.real}, [(hl.ConditionalQuadratic.gaussian([0.0], 1.0), ["x"])]
    )
    constant = hl.FactorGroup(hl.Table(np.array([0.3])), np.zeros((1, 0), dtype=np.int32))
    graph = hl.FactorGraph(graph.variables, (*graph.groups, constant), graph.evidence)

    found = hl.kalman_filter(graph, np.array([0]))

    assert found.log_partition[-1] == pytest.approx(0.3, abs=1e-12)


def test_times_beyond_integers_are_an_error():
    with pytest.raises(ModelError, match=r"'b' has time 9223372036854775813: a time must be less"):
        hl.kalman_filter(two(), np.array([0, 2**63 + 5], dtype=np.uint64))


def test_evidence_that_alone_outweighs_a_push_is_refused_with_the_reason():
    model = hl.parse("""
        t = {0, 1}
        x(t): real
        y(t): real
        -0.1 x(k)^2
        0.2 x(k)^2
        -1 (x(k)^2 + y(k)^2 - 0.1 * x(k) * y(k))
    """)
    graph = hl.ground(model).observe({"y(0)": 1.0, "y(1)": 2.0})

    with pytest.raises(
        DivergentModelError, match=r"without evidence of that time, .* improper in 'x\(0\)'"
    ):
        hl.kalman_filter(graph, "t")

"""What may be observed, in which words, and what is refused."""

import numpy as np
import pytest

from hylift.errors import EvidenceError, HyliftError, UnknownNameError
from hylift.graph import Evidence, FactorGraph, Soft, boolean, categorical, interval, real

GRAPH = FactorGraph.build(
    {
        "wet": boolean,
        "color": categorical(["red", "green", "blue"]),
        "dice": categorical(["1", "2", "3", "4", "5", "6"]),
        "count": categorical(4),
        "x": real,
        "share": interval(0, 1),
    },
    [],
)


def observed(name: str, value: object) -> float:
    """The number that an observation is stored as."""
    return float(GRAPH.observe({name: value}).evidence.value[0])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("wet", True, 1),
        ("wet", np.False_, 0),
        ("wet", "true", 1),
        ("wet", 1, 1),
        ("wet", 0.0, 0),
        ("color", "green", 1),
        ("color", np.str_("blue"), 2),
        ("color", 2, 2),
        ("color", np.int64(0), 0),
        ("count", 3, 3),
        ("count", "3", 3),
        ("dice", "6", 5),
        ("x", 2, 2.0),
        ("x", np.float32(0.5), 0.5),
        ("x", "1.5", 1.5),
        ("share", 1.0, 1.0),
        ("share", 0, 0.0),
    ],
)
def test_states_may_be_given_by_label_truth_value_or_index(
    name: str, value: object, expected: float
) -> None:
    assert observed(name, value) == expected


@pytest.mark.parametrize("value", [1, 1.0, np.int64(1), np.float64(1.0), "1"])
def test_a_number_that_is_a_label_means_the_label_whatever_its_type(value: object) -> None:
    assert observed("dice", value) == 0


def test_a_number_that_is_no_label_of_numbers_is_refused() -> None:
    """Where labels are 1 to 6, a 0 would silently mean 1."""
    with pytest.raises(EvidenceError):
        observed("dice", 0)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        (
            "color",
            "gren",
            "color cannot be 'gren': its states are red, green, blue. Did you mean 'green'?",
        ),
        ("color", 3, "color cannot be 3: its states are red, green, blue."),
        ("color", -1, "color cannot be -1"),
        ("color", 0.5, "color cannot be 0.5"),
        ("color", None, "color cannot be None"),
        ("wet", "tru", "wet cannot be 'tru': its states are false, true. Did you mean 'true'?"),
        ("x", "warm", "x is real and cannot be 'warm'"),
        ("x", None, "x is real and cannot be None"),
        ("x", np.nan, "x cannot be nan: its domain is [-inf, inf]"),
        ("x", np.inf, "x cannot be inf: its domain is [-inf, inf]"),
        ("share", 1.5, "share cannot be 1.5: its domain is [0, 1]"),
        ("share", -1e-9, "share cannot be -1e-09: its domain is [0, 1]"),
        ("x", Soft(1.0, -1.0), "'x' is observed with variance -1.0: a variance is 0 for a disc"),
        ("x", Soft(1.0, np.nan), "'x' is observed with variance nan"),
        ("x", Soft(1.0, np.inf), "'x' is observed with variance inf"),
        ("x", Soft(np.nan, 1.0), "'x' cannot be nan"),
        ("color", Soft("red", 0.5), "'color' is observed with variance 0.5"),
    ],
)
def test_what_does_not_fit_its_variable_is_refused(name: str, value: object, text: str) -> None:
    with pytest.raises(EvidenceError) as refusal:
        GRAPH.observe({name: value})

    assert text in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("color", np.nan),
        ("color", np.inf),
        ("x", Soft("warm", 1.0)),
        ("x", Soft(1.0, "wide")),
        ("x", 10**400),
    ],
    ids=["nan state", "infinite state", "measured word", "variance of a word", "huge integer"],
)
def test_what_is_no_number_is_an_error_of_the_evidence(name: str, value: object) -> None:
    with pytest.raises(HyliftError):
        GRAPH.observe({name: value})


def test_an_unknown_variable_suggests_the_closest() -> None:
    with pytest.raises(UnknownNameError, match=r"no variable 'colour'\. Did you mean 'color'\?"):
        GRAPH.observe({"colour": "red"})


def test_a_later_observation_replaces_an_earlier_one() -> None:
    graph = GRAPH.observe({"x": 1.0, "wet": True}).observe({"x": Soft(2.0, 0.5)})

    evidence = {
        GRAPH.variables.names[int(v)]: (float(value), float(var))
        for v, value, var in zip(
            graph.evidence.variable, graph.evidence.value, graph.evidence.var, strict=True
        )
    }
    assert evidence == {"wet": (1.0, 0.0), "x": (2.0, 0.5)}
    assert graph.evidence.is_hard.tolist() == [True, False]


def test_a_measurement_may_lie_outside_the_domain() -> None:
    graph = GRAPH.observe({"share": Soft(1.5, 0.1)})

    assert graph.evidence.value.tolist() == [1.5]


def test_a_measurement_without_error_is_an_observation() -> None:
    graph = GRAPH.observe({"x": Soft(1.5, 0.0)})

    assert graph.evidence.is_hard.tolist() == [True]


def test_evidence_by_ids() -> None:
    graph = GRAPH.observe(Evidence.of([1, 4], [2, 0.5], [0.0, 0.25]))

    assert len(graph.evidence) == 2
    assert graph.evidence.variable.dtype == np.int32


@pytest.mark.parametrize(
    ("evidence", "text"),
    [
        (lambda: Evidence.of([0, 0], [1, 1]), "'wet' is observed more than once"),
        (lambda: Evidence.of([9], [1]), "observation 0 is of variable 9, but the graph has 6"),
        (lambda: Evidence.of([-1], [1]), "observation 0 is of variable -1"),
        (lambda: Evidence.of([0, 1], [1]), "evidence on 2 variables needs as many values"),
        (lambda: Evidence.of([1], [3]), "'color' cannot be 3: its states are 0 to 2"),
        (lambda: Evidence.of([1], [0.5]), "'color' cannot be 0.5: its states are 0 to 2"),
        (lambda: Evidence.of([5], [2.0]), "'share' cannot be 2: its domain is [0, 1]"),
        (lambda: Evidence.of([4], [1.0], -0.5), "'x' is observed with variance -0.5"),
        (lambda: Evidence.of([1], [1], 0.5), "'color' is observed with variance 0.5"),
    ],
)
def test_evidence_by_ids_that_does_not_fit_is_refused(evidence, text: str) -> None:
    with pytest.raises(EvidenceError) as refusal:
        GRAPH.observe(evidence())

    assert text in str(refusal.value)


def test_no_evidence_is_no_evidence() -> None:
    assert len(GRAPH.observe({}).evidence) == 0
    assert len(Evidence.none()) == 0


def test_what_is_measured_is_counted_apart_from_what_is_observed() -> None:
    graph = GRAPH.observe({"wet": True, "share": 0.5})
    measured = graph.observe({"x": Soft(1.0, 0.1)})

    assert graph.evidence.counts == "2 observed"
    assert measured.evidence.counts == "2 observed, 1 measured"
    assert (measured.evidence.num_observed, measured.evidence.num_measured) == (2, 1)
    assert repr(measured) == (
        "FactorGraph(6 variables, 0 factors in 0 groups, 2 observed, 1 measured)"
    )

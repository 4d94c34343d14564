"""The flat layout of factors."""

import numpy as np

import hylift as hl
from hylift.inference.terms import Terms


def mixed_graph() -> hl.FactorGraph:
    """Tables and quadratics over variables of different sizes."""
    rng = np.random.default_rng(0)
    switched = hl.ConditionalQuadratic(
        -np.eye(2) + np.zeros((1, 3, 2, 2, 2)), rng.normal(size=(1, 3, 2, 2)), np.zeros((1, 3, 2))
    )
    return hl.FactorGraph.build(
        {
            "a": hl.categorical(3),
            "b": hl.boolean,
            "c": hl.categorical(4),
            "x": hl.real,
            "y": hl.real,
        },
        [
            (hl.Table.shared(rng.normal(size=(4, 3, 2))), ["c", "a", "b"]),
            (switched, ["a", "b", "y", "x"]),
            (hl.ConditionalQuadratic.square(-1.0), ["x"]),
        ],
    )


def test_strides_lead_to_the_value_of_every_joint_state():
    graph = mixed_graph()
    terms = Terms.of(graph.groups, graph.variables.num_states)
    table = graph.groups[0].potential.log_table[0]

    slots = slice(*terms.slot_ptr[:2])
    for c, a, b in np.ndindex(4, 3, 2):
        joint = terms.stride[slots] @ [c, a, b]

        assert terms.theta[terms.base[0] + joint] == table[c, a, b]
    np.testing.assert_array_equal(terms.num_joint, [24, 6, 1])
    np.testing.assert_array_equal(terms.stride, [6, 2, 1, 2, 1, 0, 0, 0])
    np.testing.assert_array_equal(terms.num_reals == 0, [True, False, False])


def test_incidence_lists_the_slots_of_each_variable():
    graph = mixed_graph()
    terms = Terms.of(graph.groups, graph.variables.num_states)

    ptr, slot = terms.incidence

    for v in range(graph.num_variables):
        inside = slot[ptr[v] : ptr[v + 1]]
        np.testing.assert_array_equal(inside, np.flatnonzero(terms.slots == v))
    np.testing.assert_array_equal(terms.term, [0, 0, 0, 1, 1, 1, 1, 2])


def test_a_layout_of_no_groups_has_no_terms():
    terms = Terms.of([], np.array([2, 0], dtype=np.int32))

    assert len(terms) == len(terms.stride) == len(terms.num_joint) == 0
    np.testing.assert_array_equal(terms.incidence.ptr, [0, 0, 0])

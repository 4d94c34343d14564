"""How finely scopes with reals are integrated."""

from hylift.numerics.quadrature import nodes_per_slot


def test_few_nodes_while_searching_and_more_at_the_end() -> None:
    assert [nodes_per_slot(n) for n in range(7)] == [1, 12, 5, 4, 3, 3, 3]
    assert [nodes_per_slot(n, "final") for n in range(7)] == [1, 12, 12, 8, 5, 5, 5]

"""The marginals of the model `papers` of the page on methods, by sums over nodes.

Given the popularity of its three hidden topics, papers are independent of each other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.families.score import Moments
from hylift.graph import FactorGraph

Array = NDArray[np.float64]
WEIGHT = 0.5
TOPICS = [f"t{number}" for number in range(10)]


def papers_moments(graph: FactorGraph) -> Moments:
    """The true marginals; graph: without hidden sessions."""
    known = graph.evidence
    seen = dict(zip(graph.variables.names.render(known.variable).to_pylist(), known.value.tolist(),
                    strict=True))  # fmt: skip
    value = {topic: seen.get(f"TopicPopularity({topic})") for topic in TOPICS}
    hidden = [topic for topic in TOPICS if value[topic] is None]
    topic_nodes, topic_weight = _nodes(4.4, 6.4, 48)  # ten deviations around all of them
    axes = dict(zip(hidden, np.meshgrid(*[topic_nodes] * 3, indexing="ij"), strict=True))
    at = {topic: axes[topic] if topic in hidden else value[topic] for topic in TOPICS}
    log_joint = np.log(np.einsum("i,j,k->ijk", *[topic_weight] * 3))
    for one in TOPICS:
        for other in TOPICS:
            if one != other and seen[f"SameSession({one},{other})"]:
                log_joint = log_joint - WEIGHT * (at[one] - at[other]) ** 2
    of_papers = {f"p{number}": _paper(f"p{number}", seen, value, topic_nodes)
                 for number in range(300)}  # fmt: skip
    sums = {paper: np.einsum("u,ui,uj,uk->ijk", *parts, optimize=True)
            for paper, (_, *parts) in of_papers.items()}  # fmt: skip
    log_joint = log_joint + sum(np.log(one) for one in sums.values())
    joint = np.exp(log_joint - log_joint.max())
    joint /= joint.sum()
    found = {f"TopicPopularity({t})": _moments(joint.ravel(), axes[t].ravel()) for t in hidden}
    for paper, (nodes, base, *parts) in of_papers.items():
        own = joint / sums[paper]
        prob = base * np.einsum("ijk,ui,uj,uk->u", own, *parts, optimize=True)
        if f"PaperPopularity({paper})" not in seen:
            found[f"PaperPopularity({paper})"] = _moments(prob, nodes)
        for topic in TOPICS:
            name = f"PaperIn({paper},{topic})"
            if name in seen:
                continue
            if topic in hidden:
                place, true = hidden.index(topic), list(parts)
                true[place] = parts[place] - 1.0  # without the state 'false'
                share = base @ np.einsum("ijk,ui,uj,uk->u", own, *true, optimize=True)
            else:
                weight = np.exp(-WEIGHT * (nodes - value[topic]) ** 2)
                share = prob @ (weight / (1.0 + weight))
            found[name] = np.array([1.0 - share, share])
    names = sorted(found)
    links = [name for name in names if name.startswith("PaperIn")]
    reals = [name for name in names if not name.startswith("PaperIn")]
    mean, std = np.array([found[name] for name in reals]).T
    return Moments(
        np.concatenate([found[name] for name in links]),
        np.repeat(np.array(links, dtype=object), 2),
        mean, std, np.array(reals, dtype=object),
    )  # fmt: skip


def _nodes(low: float, high: float, count: int) -> tuple[Array, Array]:
    nodes, weight = np.polynomial.legendre.leggauss(count)
    half = (high - low) / 2
    return low + half * (1 + nodes), half * weight


def _moments(prob: Array, nodes: Array) -> Array:
    mean = prob @ nodes
    return np.array([mean, np.sqrt(prob @ (nodes - mean) ** 2)])


def _paper(
    paper: str, seen: Mapping[str, float], value: Mapping[str, float | None], topic_nodes: Array
) -> tuple[Array, ...]:
    """Nodes of its popularity u, weights (u,), and factors (u, node) of each hidden topic."""
    known = seen.get(f"PaperPopularity({paper})")
    nodes, base = _nodes(0, 10, 64) if known is None else (np.array([known]), np.ones(1))
    base = base * np.exp(-0.3 * (nodes - 1) ** 2)
    parts = []
    for topic, popularity in value.items():
        is_in = seen.get(f"PaperIn({paper},{topic})")
        other = topic_nodes if popularity is None else np.array([popularity])
        true = np.exp(-WEIGHT * (nodes[:, None] - other) ** 2)
        factor = 1.0 + true if is_in is None else true if is_in else np.ones_like(true)
        if popularity is None:
            parts.append(factor)
        else:
            base = base * factor[:, 0]
    return nodes, base, *parts

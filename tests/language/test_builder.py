"""Models written in Python equal the same models written as text."""

import numpy as np
import pytest

from hylift.errors import ModelError
from hylift.graph.domains import interval, real
from hylift.language.builder import ModelBuilder
from hylift.language.operators import (
    absolute,
    exists,
    exp,
    forall,
    gaussian,
    log,
    maximum,
    minimum,
    normal,
)
from hylift.language.report import ModelWarning
from hylift.language.statements import Model, Rule
from hylift.language.syntax import Apply, Atom, Number, Variable
from hylift.language.text.parser import parse


def papers() -> tuple[Model, str]:
    m = ModelBuilder()
    topic, paper = m.type("topic", ["t0", "t1"]), m.type("paper")
    In = m.predicate("In", paper, topic)
    Near = m.predicate("Near", paper, paper)
    Topic = m.predicate("Topic", topic)
    Pop = m.predicate("Pop", paper, domain=interval(0, 10))
    Kind = m.predicate("Kind", paper, topic, unique=topic)
    W = m.const("W", 0.3)
    p, q, t = m.variables("p q t")
    m.rule(0.5, In(p, t) * (Pop(p) == 1.0), where=[p != q, Near(p, q)])
    m.rule(W * 2, (In(p, t) & In(q, t)) >> Near(p, q))
    m.rule({"t0": 0.1, "t1": W}, In(p, +t))
    m.rule({("t0", "t1"): 0.1, "*": 0}, In(p, +t) | Kind(p, +m.variable("s")))
    m.hard(In(p, t) >> Topic(t), where=t != "t0")
    m.rule(1, Near(p, q).iff(~Near(q, p)), where=[p != q, ~Near(p, p)])
    m.rule(2, exists([t], In(p, t)) & forall(t, Kind(p, t) >> Topic(t)))
    m.rule(0.7, Kind("New York", "t0") | In(p, "t1"))
    text = """
        topic = {t0, t1}
        paper
        In(paper, topic)
        Near(paper, paper)
        Topic(topic)
        Pop(paper): real[0, 10]
        Kind(paper, topic!)
        const W = 0.3
        0.5  In(p, t) * (Pop(p) = 1.0)  where p != q, Near(p, q)
        (W*2)  In(p, t) ^ In(q, t) => Near(p, q)
        {t0: 0.1, t1: W}  In(p, +t)
        {(t0, t1): 0.1, *: 0}  In(p, +t) v Kind(p, +s)
        In(p, t) => Topic(t) where t != "t0".
        1  Near(p, q) <=> !Near(q, p)  where p != q ^ !Near(p, p)
        2  (EXIST t In(p, t)) ^ (FORALL t Kind(p, t) => Topic(t))
        0.7  Kind("New York", "t0") v In(p, "t1")
    """
    return m.build(), text


def tracking() -> tuple[Model, str]:
    m = ModelBuilder()
    time, wheel = m.type("time", range(5)), m.type("wheel")
    x = m.predicate("x", wheel, time, domain=real)
    y = m.predicate("y", wheel, "time", domain=real)
    rain = m.predicate("rain")
    level = m.predicate("level", domain=real)
    a = m.const("a", 0.9)
    w, t = m.variables("w, t")
    m.rule(None, normal(x(w, t + 1), a * x(w, t), 0.1))
    m.rule(1.0, normal(y(w, t), x(w, t) + 2 / a, a), where=[t > 0])
    m.rule(None, gaussian([x(w, 0), level], cov=[[10, 5], [5, 10]], mean=[0, a]))
    m.rule(None, gaussian([y(w, t)], cov=[[1]]))
    m.rule(2, (level > 0.05).with_slope(20))
    m.rule(0.2, rain * (level == 2) + ~rain() * (1 - level <= 7))
    m.rule(None, x(w, t) ** 2 * (t == 3), where=t + 1 < 4)
    m.rule(1, -(level**2) - abs(level) - absolute(x(w, t)))
    m.rule(1, minimum(level, 3.0, x(w, t)) - maximum(level, 0) - exp(level) - log(exp(level)))
    text = """
        time = {0, ..., 4}
        wheel
        x(wheel, time): real
        y(wheel, time): real
        rain: boolean
        level: real
        const a = 0.9
        normal(x(w, t+1) | a*x(w, t), 0.1)
        1.0 normal(y(w, t) | x(w, t) + 2/a, a) where t > 0
        gaussian(x(w, 0), level; mean=[0, a], cov=[[10, 5], [5, 10]])
        gaussian(y(w, t); cov=[[1]])
        2 (level > 0.05; slope=20)
        0.2 rain * (level = 2) + !rain * (1 - level <= 7)
        x(w, t)^2 * (t = 3) where t+1 < 4
        1 (-level^2 - abs(level) - abs(x(w, t)))
        1 min(level, 3.0, x(w, t)) - max(level, 0) - exp(level) - log(exp(level))
    """
    return m.build(), text


@pytest.mark.filterwarnings("ignore::hylift.language.report.ModelWarning")
@pytest.mark.parametrize("made", [papers, tracking])
class TestModels:
    def test_python_and_text_make_the_same_model(self, made):
        model, text = made()

        assert model == parse(text)

    def test_a_model_is_read_back_from_its_text(self, made):
        model, _ = made()

        assert parse(str(model)) == model


# The parts of a rule.


@pytest.fixture
def m() -> ModelBuilder:
    return ModelBuilder()


def only_rule(m: ModelBuilder) -> Rule:
    (rule,) = m.build().rules
    return rule


def test_numbers_on_either_side_of_an_operator_are_taken(m):
    x = m.predicate("x", domain=real)

    m.rule(None, 2 * x + 1 - np.float64(3) * x / np.int64(2) + x * (x > 0.5))

    assert only_rule(m) == parse("x: real\n2*x + 1 - 3*x/2 + x*(x > 0.5)").rules[0]


def test_sums_of_python_start_with_their_first_term(m):
    x = m.predicate("x", "t", domain=real)

    m.rule(None, -sum(x(name) ** 2 for name in ("A", "B")))

    assert only_rule(m) == parse("x(t): real\n-(x(A)^2 + x(B)^2)").rules[0]


def test_truth_values_of_python_are_truths_of_the_model(m):
    rain = m.predicate("rain")

    m.rule(1, True & rain | False)

    assert only_rule(m) == parse("rain()\n1 true ^ rain v false").rules[0]


def test_python_binds_implication_tighter_than_and(m):
    a, b, c = (m.predicate(name) for name in ("A", "B", "C"))

    m.rule(1, a & b >> c)

    assert only_rule(m) == parse("A()\nB()\nC()\n1 A ^ (B => C)").rules[0]


def test_marked_variables_are_listed_once_in_order_of_appearance(m):
    A = m.predicate("A", "t", "t")
    x, y = m.variables("x y")

    m.rule({"*": 1}, A(+y, +x) & A(+x, +y))

    assert only_rule(m).per_constant == ("y", "x")


def test_a_potential_is_a_function_of_atoms(m):
    def energy(level, wet):
        return -((level - wet) ** 2)

    x = m.predicate("x", "t", domain=interval(0, 1))
    wet = m.predicate("wet")
    (t,) = m.variables("t")

    m.potential(energy, x(t), wet, weight=0.5, where=[t != "T1"])

    rule = only_rule(m)
    assert rule.formula == Apply(energy, (Atom("x", (Variable("t"),)), Atom("wet")))
    assert rule.weight == Number(0.5)


@pytest.mark.parametrize("constants", [["0", "1", "2"], range(3), np.arange(3), (0, 1, 2)])
def test_constants_are_text_or_whole_numbers(m, constants):
    m.type("t", constants)

    assert m.build().types[0].constants == ("0", "1", "2")


@pytest.mark.parametrize("unique", ["topic", 1])
def test_a_unique_argument_is_told_by_type_or_position(m, unique):
    kind = m.predicate("Kind", "paper", "topic", unique=unique)

    assert kind.declared.unique == 1


# Refusals.


def refusal(act) -> str:
    with pytest.raises(ModelError) as raised:
        act()
    return str(raised.value)


def parts_of_a_model() -> dict[str, object]:
    m = ModelBuilder()
    p, q = m.variables("p q")
    return {
        "m": m,
        "In": m.predicate("In", "paper", "topic"),
        "Pop": m.predicate("Pop", "paper", domain=real),
        "rain": m.predicate("rain"),
        "p": p,
        "q": q,
    }


TRUTH = (
    "is part of a model, and neither true nor false in Python: "
    "write & | ~ for and, or, not, and 'a < b < c' as two comparisons"
)
APART = "variables are compared with variables and constants, numbers with numbers"
BELONGS = f"is a logical variable, where a number or a truth value belongs: {APART}"
TERMS = "takes logical variables and constants (text or integers), not"


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda In, p, q, **_: bool(In(p, q)), f"<In(p, q)> {TRUTH}"),
        (lambda Pop, p, **_: 0 < Pop(p) < 1, f"<Pop(p) > 0> {TRUTH}"),
        (lambda In, rain, p, q, **_: In(p, q) and rain, f"<In(p, q)> {TRUTH}"),
        (lambda rain, **_: not rain, f"<predicate rain> {TRUTH}"),
        (lambda p, q, **_: p in [q], f"<q = p> {TRUTH}"),
        (lambda p, **_: bool(p), "<p> is a logical variable, and neither true nor false in Python"),
        (lambda In, p, **_: In(p), "'In' takes 2 arguments (paper, topic), not 1"),
        (lambda In, p, **_: In & In(p, p), "'In' takes 2 arguments (paper, topic), not 0"),
        (lambda rain, p, **_: rain(p), "'rain' takes no arguments, not 1"),
        (lambda In, p, **_: In(p, 0.5), f"'In' {TERMS} 0.5"),
        (lambda In, rain, p, **_: In(p, rain()), f"'In' {TERMS} <rain>"),
        (lambda p, **_: p == 0.5, f"<p> = {TERMS} 0.5"),
        (lambda Pop, p, **_: Pop(p) == p, f"<p> {BELONGS}"),
        (lambda Pop, p, **_: exp(p) * Pop(p), f"<p> {BELONGS}"),
        (
            lambda Pop, p, q, **_: q < Pop(p),
            f"<q> is a logical variable, and <Pop(p)> is not: {APART}",
        ),
        (lambda Pop, p, **_: Pop(p) + "one", "'one' is neither a formula nor a number"),
        (lambda Pop, p, **_: Pop(p) ** Pop(p), "an exponent must be a number, not <Pop(p)>"),
        (lambda p, **_: p + 0.5, "<p> cannot be shifted by 0.5: a shift must be an integer"),
        (lambda p, **_: p - "1", "<p> cannot be shifted by '1': a shift must be an integer"),
        (
            lambda p, **_: p + 999_999_999 + 1,
            "<p + 999999999> is shifted too far: the maximum is 999,999,999",
        ),
        (
            lambda p, **_: p - 10**12,
            "<p> is shifted too far: the maximum is 999,999,999",
        ),
        (lambda Pop, p, **_: Pop(p).with_slope(2), "<Pop(p)> has no slope: only comparisons have"),
        (
            lambda In, p, q, **_: exists([q + 1], In(p, q)),
            "a quantifier takes plain logical variables, not <q + 1>",
        ),
        (
            lambda In, p, q, **_: forall(["q"], In(p, q)),
            "a quantifier takes plain logical variables, not 'q'",
        ),
        (
            lambda m, **_: m.type("my type"),
            "the name of a type must be a word of letters, digits and underscores, not 'my type'",
        ),
        (
            lambda m, **_: m.const("where", 1),
            "'where' is a keyword: give the constant another name",
        ),
        (
            lambda m, **_: m.variables("p Q"),
            "'Q' is capitalized like a constant: variables begin with a small letter",
        ),
        (
            lambda m, **_: m.type("t", "ab"),
            "the constants of type 't' must be a list, not the string 'ab'",
        ),
        (
            lambda m, **_: m.type("t", [0.5]),
            "type 't' has constants (text or integers), not 0.5",
        ),
        (lambda m, **_: m.predicate("A", 3), "the arguments of 'A' must be types, not 3"),
        (
            lambda m, **_: m.predicate("A", "t", domain="real"),
            "the domain of 'A' must be boolean, real or an interval, not 'real'",
        ),
        (
            lambda m, **_: m.predicate("A", "paper", "topic", unique="topc"),
            "unique='topc': 'A' has no argument of that type; its arguments are (paper, topic). "
            "Did you mean 'topic'?",
        ),
        (
            lambda m, **_: m.predicate("A", "paper", "paper", unique="paper"),
            "unique='paper': 'A' has more than one argument of that type: give its position",
        ),
        (lambda m, **_: m.predicate("A", "t", unique=1), "unique=1: 'A' has arguments 0 to 0"),
        (lambda m, **_: m.predicate("A", unique=0), "unique=0: 'A' has no arguments"),
        (
            lambda m, rain, **_: m.rule({0.5: 1}, rain),
            "the keys of a weight table are constants (text or integers), not 0.5",
        ),
        (lambda m, rain, **_: m.rule("0.5", rain), "'0.5' is neither a formula nor a number"),
        (
            lambda m, In, p, q, **_: m.rule(1, In(p, q), where=[In(p, +q)]),
            "'+q' is only allowed in the formula, not in where",
        ),
        (
            lambda m, rain, **_: m.potential(3, rain),
            "a potential must be a function of the atoms' values, not 3",
        ),
        (
            lambda m, rain, **_: m.potential(abs, ~rain),
            "the arguments of a potential must be atoms, not <!rain>",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(act, message):
    parts = parts_of_a_model()

    assert refusal(lambda: act(**parts)) == message


def test_numpy_arrays_leave_operators_to_the_model():
    parts = parts_of_a_model()

    message = refusal(lambda: np.array([1, 2]) * parts["rain"])

    assert message == "array([1, 2]) is neither a formula nor a number"


def test_matrices_of_numpy_are_covariances(m):
    x, y = (m.predicate(name, domain=real) for name in "xy")

    m.rule(None, gaussian([x, y], cov=np.eye(2), mean=np.zeros(2)))

    text = "x: real\ny: real\ngaussian(x, y; mean=[0, 0], cov=[[1, 0], [0, 1]])"
    assert only_rule(m) == parse(text).rules[0]


def test_building_raises_the_errors_of_the_model(m):
    x = m.predicate("x", domain=real)
    m.rule(1, x & x)
    m.hard(x)

    assert refusal(m.build) == (
        "rule 1, `1 x ^ x`: 'x' is real, but '^' needs a truth value: "
        "compare it with a number, and multiply by that comparison\n"
        "\n"
        "rule 2, `x.`: 'x' is a number, but a hard rule needs a truth value: "
        "give the rule a weight with 'm.rule' in place of 'm.hard'"
    )


def test_building_warns_of_what_is_strange(m):
    m.rule(0, m.predicate("rain"))

    with pytest.warns(ModelWarning, match="rule 1, `0 rain`: a rule of weight 0 has no effect"):
        m.build()

"""Every error in a rule: its words, and the words of the rule it points at."""

import pytest

from language.checked import assert_one, found

NAMES = [
    ("1 Inn(p, t)", "unknown predicate 'Inn'. Did you mean 'In'?", "Inn"),
    ("1 lgo(p) ^ In(p, t)", "unknown predicate 'lgo'. Did you mean 'log'?", "lgo"),
    ("1 In(p, t, q)", "'In' takes 2 arguments (paper, topic), not 3", "In"),
    ("1 Topic(p, t)", "'Topic' takes 1 argument (topic), not 2", "Topic"),
    (
        "1 In(p, t) ^ Hall = 1",
        "'Hall = 1' compares two constants; variables begin with a small letter. Did you mean "
        "'Half'?",
        "Hall = 1",
    ),
    (
        "1e300 In(p, t)",
        "a weight of 1e+300 is too large; the maximum is 1e+100. For a hard rule, end "
        "it with a period instead",
        "1e300",
    ),
    ("1 rain(p) ^ Near(p, p)", "'rain' takes no arguments, not 1", "rain"),
    ('1 In(p, "t9")', "type 'topic' has no constant 't9'.", '"t9"'),
    ("1 At(p, 12)", "type 'time' has no constant '12'. Did you mean '2'?", "12"),
    ("1 At(p, t) ^ t != 12", "type 'time' has no constant '12'. Did you mean '2'?", "12"),
    ('1 In(p, t) where "x" != t', "type 'topic' has no constant 'x'.", '"x"'),
    (
        "Pop(p) = DoorLenght",
        "'DoorLenght' is neither a constant nor a predicate. Did you mean 'DoorLength'?",
        "DoorLenght",
    ),
    (
        "1 rian ^ In(p, t)",
        "'rian' is neither a constant nor a predicate. Did you mean 'rain'?",
        "rian",
    ),
    (
        "Pop(p) = levl",
        "'levl' is neither a constant nor a predicate. Did you mean 'level'?",
        "levl",
    ),
    ("1 In(p, t) ^ Topic", "'Topic' takes 1 argument (topic), not 0", "Topic"),
    ("Pop(p) * p", "the variable 'p' is neither a number nor a truth value", "p"),
    ("1 In(p, t) ^ t", "the variable 't' is neither a number nor a truth value", "t"),
    ("Pop(p) = p", "'Pop(p) = p' compares the variable 'p' with the number 'Pop(p)'", "p"),
    (
        "1 Kind(p, t) = t",
        "'Kind(p, t) = t' compares the variable 't' with the truth value 'Kind(p, t)'",
        "t",
    ),
    (
        'Pop(p) = "t1"',
        "'Pop(p) = \"t1\"' compares 't1' of type 'topic' with the number 'Pop(p)'",
        '"t1"',
    ),
    (
        "1 Kind(p, t+1)",
        "'t + 1' stands in the '!' argument of 'Kind', whose constants are values and have no "
        "neighbours",
        "t+1",
    ),
]

TRUTHS = "truth values are written 'true' and 'false'"
FUNCTIONS = "the functions of numbers are abs, exp, log, min and max"

FOREIGN = [
    ("1 Wet(p) <=> TRUE", f"'TRUE' is neither a constant nor a predicate; {TRUTHS}", "TRUE"),
    ("1 Wet(p) ^ False", f"'False' is neither a constant nor a predicate; {TRUTHS}", "False"),
    ("Pop(p) = sqrt(2)", f"unknown predicate 'sqrt'; {FUNCTIONS}", "sqrt"),
]

VARIABLES = [
    (
        "1 Wet(p) ^ p != q",
        "variable 'q' is compared, but no atom of the rule has it",
        "q",
    ),
    (
        "1 Wet(p) ^ EXIST q p != q",
        "variable 'q' of EXIST is compared, but no atom of its formula has it",
        "q",
    ),
    (
        "1 Wet(p) ^ leve != p",
        "variable 'leve' is compared, but no atom of the rule has it. Did you mean 'level'?",
        "leve",
    ),
    (
        "1 In(p, t) ^ Topic(p)",
        "variable 'p' is a 'paper' in In(p, t) and a 'topic' in Topic(p)",
        "p",
    ),
    (
        "1 In(p, t) ^ z = A",
        "variable 'z' is compared, but no atom of the rule has it",
        "z",
    ),
    (
        "1 In(p, t) where p != q",
        "variable 'q' is compared in where, but no atom of the rule has it",
        "q",
    ),
    (
        "1 Near(p, p) ^ (EXIST q Near(p, q)) where p != r",
        "variable 'r' is compared in where, but no atom of the rule has it",
        "r",
    ),
    (
        "1 EXIST q, t In(p, t)",
        "EXIST names 'q', but its formula does not use it",
        "EXIST q, t In(p, t)",
    ),
    ("1 EXIST t, t In(p, t)", "EXIST names 't' twice", "EXIST t, t In(p, t)"),
]

DETERMINISTIC = "a variance of 0, a deterministic relation, is no density; use a small one"
NEEDS = "needs a truth value"
MULTIPLY = "compare it with a number, and multiply by that comparison"
INSTEAD = "multiply by it instead, as in 'A(x) * (B(x) = 1)'"
SOFTEN = "give the rule a weight in place of the period"
UNIQUE = "'Kind' has an argument marked '!', so it cannot be closed-world, as where requires"
WHERE = "where takes comparisons and truth values that the data decide"

KINDS = [
    ("1 Pop(p) ^ In(p, t)", f"'Pop(p)' is real, but '^' {NEEDS}: {MULTIPLY}", "Pop"),
    ("1 In(p, t) => Pop(p)", f"'Pop(p)' is real, but '=>' {NEEDS}: {MULTIPLY}", "Pop"),
    ("1 !Pop(p)", f"'Pop(p)' is real, but '!' {NEEDS}: {MULTIPLY}", "Pop"),
    ("1 EXIST p Pop(p)", f"'Pop(p)' is real, but EXIST {NEEDS}: {MULTIPLY}", "Pop"),
    ("Pop(p).", f"'Pop(p)' is a number, but a hard rule {NEEDS}: {SOFTEN}", "Pop"),
    ("Pop(p)^2.", f"'Pop(p)^2' is a number, but a hard rule {NEEDS}: {SOFTEN}", "Pop(p)^2"),
    (
        "In(p, t) => Pop(p).",
        f"'Pop(p)' is real, but '=>' {NEEDS}: {MULTIPLY}, and {SOFTEN}",
        "Pop",
    ),
    (
        "Pop(p) = 1.",
        f"'Pop(p) = 1' is a soft comparison of numbers, but a hard rule {NEEDS}: {SOFTEN}",
        "Pop(p) = 1",
    ),
    (
        "1 In(p, t) ^ (Pop(p) > 0.5; slope=20)",
        f"'(Pop(p) > 0.5; slope=20)' is a soft comparison of numbers, but '^' {NEEDS}: {INSTEAD}",
        "Pop(p) > 0.5",
    ),
    (
        "1 In(p, t) v Pop(p) * 2",
        f"'Pop(p) * 2' is a number, but 'v' {NEEDS}",
        "Pop(p) * 2",
    ),
    (
        "-1 Pop(p) ^ 2",
        "'^' followed by a space is logical and, which needs truth values: for a power write "
        "'Pop(p)^2', without a space",
        "Pop(p) ^ 2",
    ),
    (
        '0.5 Pop(p) where Kind(p, "t0")',
        f"{UNIQUE}: write 'Kind(p, \"t0\") * (…)' instead",
        "Kind",
    ),
    (
        "In(p, t) => Topic(t) where !Kind(p, t).",
        f"{UNIQUE}: write '!Kind(p, t) => (…)' instead",
        "!Kind(p, t)",
    ),
    ("1 In(p, t) where Pop(p)", f"'Pop(p)' is real, but {WHERE}", "Pop"),
    (
        "1 In(p, t) where (Pop(p) > 2; slope=20)",
        f"{WHERE}, not '(Pop(p) > 2; slope=20)'",
        "Pop(p) > 2",
    ),
    (
        "1 In(p, t) where Pop(p) * 2",
        f"{WHERE}, not 'Pop(p) * 2'",
        "Pop(p) * 2",
    ),
    (
        "1 Wet(p) = Dry(p)",
        "'Wet(p) = Dry(p)' compares truth values: write 'Wet(p) <=> Dry(p)', or declare "
        "'Wet' and 'Dry' with ': real' if they are numbers",
        "Wet(p) = Dry(p)",
    ),
    (
        "1 Wet(p) != Dry(p)",
        "'Wet(p) != Dry(p)' compares truth values: write '!(Wet(p) <=> Dry(p))', or declare "
        "'Wet' and 'Dry' with ': real' if they are numbers",
        "Wet(p) != Dry(p)",
    ),
    (
        "1 Wet(p) = Wet(q)",
        "'Wet(p) = Wet(q)' compares truth values: write 'Wet(p) <=> Wet(q)', or declare 'Wet' with "
        "': real' if it is a number",
        "Wet(p) = Wet(q)",
    ),
    (
        "1 Wet(p) = true",
        "'Wet(p) = true' compares truth values: write 'Wet(p) <=> true'",
        "Wet(p) = true",
    ),
    ("1 Kind(p, t) < 0.5", "'<' compares numbers, but 'Kind(p, t)' is a truth value", "Kind"),
    (
        "1 Pop(p) != 3",
        "'Pop(p) != 3' compares numbers, which always differ: '!=' is for logical terms",
        "Pop(p) != 3",
    ),
    ("abs(Pop(p), 2)", "'abs' takes 1 argument, not 2", "abs(Pop(p), 2)"),
    ("max(Pop(p))", "'max' takes at least 2 arguments, not 1", "max(Pop(p))"),
    ("1 (Pop(p) > 1; slope=-2)", "a slope must be positive, not -2", "-2"),
    (
        "1 (Pop(p) > 1; slope=Pop(p))",
        "a slope is arithmetic on numbers and constants, but 'Pop(p)' is an atom",
        "Pop",
    ),
    (
        "1 (Pop(p) = 1; slope=2)",
        "a slope belongs to <, <=, > or >= between numbers, not to 'Pop(p) = 1'",
        "Pop(p) = 1",
    ),
]

DENSITIES = [
    (
        "gaussian(Kind(p, t); cov=[[1]])",
        "the values of gaussian are real, but 'Kind(p, t)' is a truth value",
        "Kind",
    ),
    (
        "gaussian(Pop(p), Len(p); mean=[1], cov=[[1, 0], [0, 1]])",
        "gaussian of 2 values needs 2 means, not 1",
        "1",
    ),
    (
        "gaussian(Pop(p), Len(p); cov=[[1, 0]])",
        "gaussian of 2 values needs a cov of 2 rows of 2",
        "gaussian(Pop(p), Len(p); cov=[[1, 0]])",
    ),
    (
        "gaussian(Pop(p), Len(p); cov=[[2, 1], [0.5, 2]])",
        "cov of gaussian must be symmetric, but entry (1, 2) is 1 and entry (2, 1) is 0.5",
        "0.5",
    ),
    (
        "gaussian(Pop(p), Len(p); cov=[[1, 2], [2, 1]])",
        "cov of gaussian must be positive definite, but its least eigenvalue is -1",
        "1",
    ),
    (
        "gaussian(Pop(p); mean=[Len(p)], cov=[[1]])",
        "a mean of gaussian is arithmetic on numbers and constants, but 'Len(p)' is an atom",
        "Len",
    ),
    (
        "gaussian(Pop(p); cov=[[1/0]])",
        "an entry of cov divides by zero in '1 / 0'",
        "1/0",
    ),
    (
        "normal(Pop(p) | 2, Half - 0.5)",
        f"the variance of normal must be positive, not 0: {DETERMINISTIC}",
        "Half - 0.5",
    ),
    (
        "normal(Wet(p) | 2, 1)",
        "the value of normal is real, but 'Wet(p)' is a truth value",
        "Wet",
    ),
]

WEIGHTS = [
    (
        "In(paper, topic)",
        "'In' is declared already in line 4; the rule needs a weight, or a period at its end to be "
        "hard",
        "In",
    ),
    (
        "inf In(p, t)",
        "unknown constant 'inf'; for a hard rule, end it with a period in place of the weight",
        "inf",
    ),
    ("not In(p, t)", "unknown constant 'not'; 'not' is written '!'", "not"),
    ("In(p, t)", "the rule needs a weight, or a period at its end to be hard", "In"),
    (
        "0.3 - Pop(p)^2",
        "'0.3 - Pop(p)^2' is a sum or difference that starts with 0.3: for a rule of weight 0.3 "
        "write '0.3 (…)'",
        "0.3 - Pop(p)^2",
    ),
    (
        "Half + Pop(p) - Len(p)",
        "'Half + Pop(p) - Len(p)' is a sum or difference that starts with Half: for a rule of "
        "weight Half write 'Half (…)'",
        "Half + Pop(p) - Len(p)",
    ),
    ("exp(999) In(p, t)", "a weight must be finite, but 'exp(999)' is not", "exp(999)"),
    ("(Half / 0) In(p, t)", "a weight divides by zero in 'Half / 0'", "Half / 0"),
    ("2 (1 = 2)", "the rule mentions no atom", "1 = 2"),
    (
        "{t0: 1, *: 0} In(p, t)",
        "a table of weights needs a variable marked '+' in the formula, as in 'A(+x)'",
        "{t0: 1, *: 0}",
    ),
    (
        "{(t0, t1): 1, *: 0} In(p, +t)",
        "a key of this table has 1 constant (+t), but 't0, t1' has 2",
        "(t0, t1)",
    ),
    (
        "{t0: 1, t7: 2, *: 0} In(p, +t)",
        "type 'topic' has no constant 't7'.",
        "t7",
    ),
    ("{t0: 1, t0: 2, *: 0} In(p, +t)", "the table of weights has 't0' twice", "t0"),
    (
        "{t0: 1} In(p, +t)",
        "the table has no weight for t1; t2: add it, or a default, '*: 0'",
        "{t0: 1}",
    ),
    (
        "{5: 1} At(p, +t)",
        "the table has no weight for 0; 1; 2; …: add it, or a default, '*: 0'",
        "{5: 1}",
    ),
    (
        "{t0: Pop(p), *: 0} In(p, +t)",
        "a weight is arithmetic on numbers and constants, but 'Pop(p)' is an atom",
        "Pop",
    ),
]


@pytest.mark.parametrize(
    ("text", "message", "words"),
    [*NAMES, *FOREIGN, *VARIABLES, *KINDS, *DENSITIES, *WEIGHTS],
)
def test_an_error_in_a_rule_says_what_is_wrong_and_where(text, message, words):
    assert_one(text, "error", message, words)


@pytest.mark.parametrize(
    "text",
    [
        "1 In(p, t) => Topic(t) ^ Near(p, q) where p != q, !rain",
        "In(p, t) => Topic(t).",
        "0.5 In(p, t) * (Pop(p) = 1.0) + !In(p, t) * (Len(p) = DoorLength)",
        "gaussian(Pop(p), Len(p); mean=[0, Half], cov=[[10, 5], [5, 10]])",
        "normal(Pop(p) | Half * Len(p), Len(p)^2)",
        "{t0: 0.1, t1: Half, t2: -1} In(p, +t)",
        "{(t0, t1): 0.1, *: 0} In(p, +s) ^ In(p, +t)",
        "{A: 0.1} Near(p, +q)",
        "1 At(p, t) => At(p, t+1)",
        "2 (Pop(p) > 0.05; slope=20)",
        "2 In(p, t) ^ Pop(p) > 0.05 where Len(p) < 3",
        "-0.04 Pop(p)^2 + Len(p)^2",
        "1 (Topic(t) + In(p, t)) = 1",
        "Kind1(topic1)\ntopic1\n1 Kind1(t)",
    ],
)
def test_sound_rules_pass(text):
    assert found(text) == []

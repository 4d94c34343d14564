"""Parse trees -> expressions and rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NoReturn, cast

from lark import Token, Tree

from hylift.language.report import fail
from hylift.language.statements import Model, Rule
from hylift.language.syntax import (
    BUILT_IN,
    CATEGORICAL,
    OPERATORS,
    Atom,
    BinaryOp,
    Call,
    Categorical,
    CompareOp,
    Comparison,
    Constant,
    Density,
    Expr,
    Gaussian,
    Normal,
    Number,
    Operation,
    Parameter,
    Place,
    Power,
    Quantified,
    Source,
    Term,
    Truth,
    Unary,
    Variable,
    WeightTable,
)
from hylift.language.text.functions import Application, FunctionValues
from hylift.language.text.notation import MAX_SHIFT, NUMERIC, QUANTIFIERS, is_capital
from hylift.language.text.tokens import (
    Branch,
    bound_variables,
    chain,
    constant,
    is_number,
    is_weight,
    number,
    place,
    quoted,
    rule_variables,
    split_rule,
    tokens_of,
    trees_of,
)
from hylift.language.walk import LONGEST_CHAIN, MAX_DEPTH, TOO_DEEP, chain_fault


def expression(tree: Branch, source: Source) -> Expr:
    """Arithmetic on constants: every word in it is a constant."""
    return _Transformer(source, Model(), set()).constants(tree)


def rule(tree: Tree[Token], source: Source, model: Model) -> Rule:
    """The rule of a statement; model: the declarations."""
    (*weights, formula), where, is_hard = split_rule(tree)
    transformer = _Transformer(source, model, rule_variables(tree))
    body = transformer.formula(formula)
    per_constant = tuple(dict.fromkeys(transformer.marked))
    conditions = transformer.conditions(where) if where else ()
    body = transformer.values.around(body, is_hard)
    weight = transformer.weight(weights[0], formula) if weights else None
    return Rule(body, weight, is_hard, conditions, per_constant, place=place(tree, source))


class _Transformer:
    """Transforms one rule: resolves its words, and collects the marked variables."""

    def __init__(self, source: Source, model: Model, variables: set[str]) -> None:
        self.source = source
        self.model = model
        self.variables = variables
        self.marked: list[str] = []
        self.values = FunctionValues(model, variables)
        self._bound: list[str] = []
        self._may_mark = False
        self._only_constants = False
        self._depth = 0

    def place(self, branch: Branch) -> Place:
        return place(branch, self.source)

    def fail(self, message: str, branch: Branch) -> NoReturn:
        fail(message, self.place(branch))

    def constants(self, branch: Branch) -> Expr:
        """An expression in which all words are constants."""
        before, self._only_constants = self._only_constants, True
        result = self.expression(branch)
        self._only_constants = before
        return result

    def expression(self, branch: Branch) -> Expr:
        while isinstance(branch, Tree) and branch.data == "group":
            branch = branch.children[0]
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.fail(TOO_DEEP, branch)
        result: Expr
        if isinstance(branch, Token):
            result = self._leaf(branch)
        else:
            result = getattr(self, f"_{branch.data}")(branch, *branch.children)
        self._depth -= 1
        return result

    def formula(self, branch: Branch) -> Expr:
        """The formula, in which variables may be marked `+`."""
        self._may_mark = True
        result = self.expression(branch)
        self._may_mark = False
        return result

    def conditions(self, where: Tree[Token]) -> tuple[Expr, ...]:
        """The conditions of a rule."""
        parts = (part for branch in where.children for part in chain(branch, "^"))
        return tuple(self.expression(part) for part in parts)

    def _leaf(self, token: Token) -> Expr:
        where = self.place(token)
        match token.type:
            case "NUMBER":
                return Number(number(token, self.source), place=where)
            case "STRING":
                return constant(token, self.source)
            case "TRUE" | "FALSE":
                return Truth(token.type == "TRUE", place=where)
        name = str(token)
        is_constant = self._only_constants or name in self.model.parameter_by_name
        if not is_constant and name in self.variables - self.model.propositions:
            return Variable(name, place=where)
        if name in BUILT_IN:
            self.fail(f"{quoted(name)} is a function: write {name}(…)", token)
        return Parameter(name, place=where) if is_constant else Atom(name, place=where)

    def _binary(self, tree: Tree[Token], left: Branch, op: Token, right: Branch) -> Expr:
        joined = cast(BinaryOp, str(op))
        operands = chain(tree, joined) if OPERATORS[joined].is_chain else [left, right]
        if len(operands) > LONGEST_CHAIN:
            self.fail(chain_fault(joined), tree)
        return Operation(joined, tuple(map(self.expression, operands)), place=self.place(tree))

    def _implied(self, tree: Tree[Token], head: Branch, _: Token, body: Branch) -> Expr:
        operands = (self.expression(body), self.expression(head))
        return Operation("=>", operands, place=self.place(tree))

    def _unary(self, tree: Tree[Token], op: Token, operand: Branch) -> Expr:
        where = self.place(tree)
        if is_number(tree):
            return Number(-number(tokens_of(tree)[1], self.source), place=where)
        value = self.expression(operand)
        return Unary("-" if op == "-" else "!", value, place=where)

    def _power(self, tree: Tree[Token], base: Branch, exponent: Token) -> Expr:
        value = number(exponent, self.source)
        return Power(self.expression(base), value, place=self.place(tree))

    def _comparison(self, tree: Tree[Token], *parts: Branch) -> Expr:
        left, sign, right = parts
        op = cast(CompareOp, str(sign))
        if op in ("=", "!=") and (equation := self._equation(left, right)):
            return equation if op == "=" else Unary("!", equation, place=self.place(tree))
        return Comparison(op, *self._sides(left, right), place=self.place(tree))

    def _sloped(self, _: Tree[Token], branch: Branch, setting: Token, slope: Branch) -> Expr:
        if setting != "slope":
            message = f"{quoted(setting)} is not a setting of a comparison: use 'slope'"
            self.fail(message, setting)
        is_comparison = isinstance(branch, Tree) and branch.data == "comparison"
        comparison = self.expression(branch) if is_comparison else None
        if not isinstance(comparison, Comparison):
            self.fail("only a comparison has a slope", branch)
        return replace(comparison, slope=self.constants(slope))

    def _equation(self, left: Branch, right: Branch) -> Atom | None:
        """`f(x) = y` as the atom that says so; None if no side is a value of a function."""
        left, right = (right, left) if not self.values.is_application(left) else (left, right)
        if not self.values.is_application(left):
            return None
        given = self._applied_to(cast(Tree[Token], left), "=")
        if self.values.is_application(right):
            value: Term | None = self._applied(cast(Tree[Token], right), "=")
        else:
            value = self._term(right)
        if value is None:
            self.fail("a value of a function is compared with a variable or a constant", right)
        return Atom(given[0], (*given[1], value), place=self.place(left))

    def _applied_to(self, tree: Tree[Token], owner: str) -> Application:
        """A function, in the arguments of `owner`, with its own arguments."""
        name, *arguments = tree.children
        if not self.values.is_application(tree):
            self.fail(self.values.no_function(str(name), owner), cast(Token, name))
        return str(name), self._arguments(str(name), cast(list[Tree[Token]], arguments))

    def _applied(self, tree: Tree[Token], owner: str) -> Variable:
        """A variable for the value of a function, of one more atom that the rule gets."""
        if (neighbour := self._neighbour(tree)) is not None:
            return neighbour
        given = self._applied_to(tree, owner)
        inner = {term.name for term in given[1] if isinstance(term, Variable)}
        if bound := inner.intersection(self._bound):
            message = f"{quoted(given[0])} depends on the quantified variable '{min(bound)}'"
            self.fail(f"{message}: quantify its value, too, as in '{given[0]}(…, y) ^ …'", tree)
        return self.values.variable(given, self.place(tree))

    def _neighbour(self, tree: Tree[Token]) -> Variable | None:
        """`succ(t)` and `pred(t)` as `t+1` and `t-1`, unless they are declared."""
        name, *arguments = tree.children
        if name not in ("succ", "pred") or str(name) in self.model.predicate_by_name:
            return None
        [variable] = arguments if len(arguments) == 1 else [None]
        if not isinstance(variable, Tree) or variable.data != "variable":
            return None
        term = self._argument(variable)
        if not isinstance(term, Variable) or len(variable.children) > 1:
            return None
        return Variable(term.name, 1 if name == "succ" else -1, place=self.place(tree))

    def _sides(self, left: Branch, right: Branch) -> tuple[Expr, Expr]:
        """The sides of a comparison, both logical terms if possible."""
        if not (is_number(left) and is_number(right)):
            terms = self._term(left), self._term(right)
            if terms[0] is not None and terms[1] is not None:
                return terms[0], terms[1]
        return self.expression(left), self.expression(right)

    def _term(self, branch: Branch) -> Term | None:
        """A side of a comparison as a logical term, if possible."""
        if is_number(branch):
            return constant(branch, self.source)
        if isinstance(branch, Token):
            if branch.type == "STRING":
                return constant(branch, self.source)
            return self._word(branch) if branch.type == "NAME" else None
        match tokens_of(branch):
            case [Token("NAME") as name, Token("PLUS" | "MINUS") as sign, Token("NUMBER") as steps]:
                term = self._word(name) if steps.isdecimal() else None
                if isinstance(term, Variable):
                    return Variable(term.name, self._shift(sign, steps), place=self.place(branch))
        return None

    def _word(self, token: Token) -> Term | None:
        name = str(token)
        is_declared = name in self.model.words
        if self._only_constants or (is_declared and name not in self.variables):
            return None
        where = self.place(token)
        return Constant(name, place=where) if is_capital(name) else Variable(name, place=where)

    def _shift(self, sign: Token, steps: Token) -> int:
        if steps.type in ("PLUS", "MINUS"):  # t++
            return int(f"{sign}1")
        if not steps.isdecimal():
            self.fail(f"a shift must be an integer, not {quoted(steps)}", steps)
        if len(steps) > len(str(MAX_SHIFT)):
            self.fail(f"{quoted(steps)} is too large a shift: the maximum is {MAX_SHIFT:,}", steps)
        return int(sign + steps)

    def _quantified(self, tree: Tree[Token], quantifier: Token, *rest: Branch) -> Expr:
        names = bound_variables(tree)
        for name in names:
            if is_capital(name):
                message = f"{quantifier} takes variables, but {quoted(name)} is a constant"
                self.fail(f"{message}: variables begin with a small letter", name)
        self._bound += names
        body = self.expression(rest[-1])
        del self._bound[len(self._bound) - len(names) :]
        kind = {**QUANTIFIERS, **NUMERIC}[quantifier]
        return Quantified(kind, tuple(map(str, names)), body, place=self.place(tree))

    def _exactly(self, tree: Tree[Token], _: Token, times: Token, *rest: Branch) -> Expr:
        count = Token("AGGREGATE", "COUNT")
        left = self._quantified(Tree("quantified", [count, *rest], tree.meta), count, *rest)
        return Comparison("=", left, self._leaf(times), place=self.place(tree))

    def _atom(self, _: Tree[Token], predicate: Token, *arguments: Tree[Token]) -> Expr:
        terms = self._arguments(str(predicate), arguments)
        return Atom(str(predicate), terms, place=self.place(predicate))

    def _arguments(self, owner: str, arguments: Iterable[Tree[Token]]) -> tuple[Term, ...]:
        return tuple(
            self._applied(part, owner) if part.data == "applied" else self._argument(part)
            for part in arguments
        )

    def _argument(self, tree: Tree[Token]) -> Term:
        if tree.data == "literal":
            return constant(tree, self.source)
        tokens = tokens_of(tree)
        is_marked = tokens[0] == "+"
        name, *shift = tokens[is_marked:]
        if tree.data == "unique":
            self.fail(f"{quoted(name + '!')} is only allowed in a declaration", tree)
        if is_capital(name):
            if len(tokens) > 1:
                message = f"{quoted(name)} is a constant: only variables are marked or shifted"
                self.fail(message, tree)
            return Constant(str(name), place=self.place(tree))
        if is_marked:
            self._mark(name, tree)
        steps = self._shift(*shift) if shift else 0
        return Variable(str(name), steps, place=self.place(tree))

    def _mark(self, name: Token, tree: Tree[Token]) -> None:
        if not self._may_mark:
            self.fail(f"{quoted('+' + name)} is only allowed in the formula", tree)
        self.marked.append(str(name))

    def _call(self, tree: Tree[Token], function: Token, *arguments: Branch) -> Expr:
        values = tuple(map(self.expression, arguments))
        if function == "logx":
            return _log_weight(values[0], self.place(tree))
        return Call(str(function), values, place=self.place(tree))

    def _normal(self, tree: Tree[Token], _: Token, *parts: Branch) -> Expr:
        value, mean, var = map(self.expression, parts)
        return Normal(value, mean, var, place=self.place(tree))

    def _density(self, tree: Tree[Token], name: Token, *parts: Branch) -> Expr:
        if name == CATEGORICAL:
            return self._categorical(tree, *parts)
        for part in parts:
            if isinstance(part, Tree) and part.data == "table":
                self.fail(f"only 'categorical' takes a table, not {quoted(name)}", part)
        value, *parameters = map(self.expression, parts)
        return Density(str(name), value, tuple(parameters), place=self.place(tree))

    def _categorical(
        self, tree: Tree[Token], value: Branch, table: Branch, *conditions: Branch
    ) -> Expr:
        given: str | WeightTable
        if isinstance(table, Tree) and table.data == "table":
            given = self._table(table)
        elif isinstance(table, Token) and table.type == "NAME":
            given = str(table)
        else:
            self.fail(
                "the table of categorical is the name of one, declared as 'P: table', or "
                "written out, as in '{A: 0.7, B: 0.3}'",
                table,
            )
        of = self.expression(value)
        return Categorical(
            of, given, tuple(map(self.expression, conditions)), place=self.place(tree)
        )

    def _gaussian(self, tree: Tree[Token], _: Token, *parts: Branch) -> Expr:
        settings = self._settings([part for part in trees_of(tree) if part.data == "setting"])
        if "cov" not in settings:
            self.fail("gaussian needs its covariances: '; cov=[[…]]'", tree)
        values = tuple(map(self.expression, parts[: len(parts) - len(settings)]))
        mean = self._vector(settings["mean"]) if "mean" in settings else ()
        cov = tuple(map(self._vector, trees_of(settings["cov"])))
        return Gaussian(values, mean, cov, place=self.place(tree))

    def _settings(self, settings: list[Tree[Token]]) -> dict[str, Tree[Token]]:
        found: dict[str, Tree[Token]] = {}
        for setting in settings:
            [name], [value] = tokens_of(setting), trees_of(setting)
            if name not in ("mean", "cov"):
                self.fail(
                    f"{quoted(name)} is not a setting of gaussian: use 'mean' and 'cov'", name
                )
            if name in found:
                self.fail(f"{quoted(name)} is given twice", name)
            if value.children and value.data != ("vector" if name == "mean" else "matrix"):
                shape = "a list, [a, b]" if name == "mean" else "a list of rows, [[a, b], [c, d]]"
                self.fail(f"{quoted(name)} is {shape}", value)
            found[str(name)] = value
        return found

    def _vector(self, tree: Tree[Token]) -> tuple[Expr, ...]:
        return tuple(map(self.constants, tree.children))

    def weight(self, branch: Branch, formula: Branch) -> Expr | WeightTable:
        """The weight before a formula."""
        if isinstance(branch, Tree) and branch.data == "table":
            return self._table(branch)
        if not is_weight(branch):
            message = "expected an operator before this, or a weight made of numbers and constants"
            tree = branch if isinstance(branch, Tree) else Tree("word", [branch])
            if any(tree.scan_values(lambda token: token == "domSize")):
                message += "; for pracmln's 'domSize', name the number of constants by 'const'"
            elif any(tree.find_data("quantified")):
                message += "; sums and counts multiply the formula, as in '(SUM x: …) * A(x)'"
            self.fail(message, formula)
        return self.constants(branch)

    def _table(self, tree: Tree[Token]) -> WeightTable:
        entries: list[tuple[tuple[str, ...], Expr]] = []
        keys: list[Place] = []
        default: Expr | None = None
        for entry in trees_of(tree):
            key, value = entry.children
            weight = self.constants(value)
            if isinstance(key, Tree):
                names = (constant(child, self.source).name for child in key.children)
                entries.append((tuple(names), weight))
                keys.append(self.place(key))
            elif default is not None:
                self.fail("'*' is given twice", key)
            else:
                default = weight
        where = self.place(tree)
        return WeightTable(tuple(entries), default, place=where, key_places=tuple(keys))


def _log_weight(probability: Expr, place: Place) -> Expr:
    """pracmln's `logx`: the logarithm, and -100 for 0."""
    if probability == Number(0.0):
        return Number(-100.0, place=place)
    return Call("log", (probability,), place=place)

# %% [markdown]
# # How able is each student, when questions differ?
#
# Students answer the questions of a test. Some questions are hard, and some tell good students from
# others far better than the rest do, but nobody knows which. How able is each student, and which
# questions are worth keeping?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

# %% [markdown]
# ## The data
#
# One table with a row for each answer, right or wrong. We make it up, so that the truth is known:
# the log-odds of a right answer are the slope of the question times how far the student's ability
# is above its difficulty.


# %%
def simulate(seed, num_students=60, num_questions=15):
    """Students and questions with their truths, and answers."""
    rng = np.random.default_rng(seed)
    students = pd.DataFrame({"student": [f"student{n}" for n in range(num_students)]})
    students["ability"] = rng.normal(0, 1, num_students)
    questions = pd.DataFrame({"question": [f"q{n}" for n in range(num_questions)]})
    questions["difficulty"] = rng.normal(0, 1, num_questions)
    questions["slope"] = rng.normal(1, 0.5, num_questions)
    answers = students.merge(questions, how="cross")
    log_odds = answers.slope * (answers.ability - answers.difficulty)
    answers["right"] = rng.random(len(answers)) < 1 / (1 + np.exp(-log_odds))
    return students, questions, answers


students, questions, answers = simulate(0)
print(answers[["student", "question", "right"]].head(3).to_string(index=False))

# %% [markdown]
# ## The model
#
# The last rule multiplies two hidden numbers, and puts the product into a logistic function: there
# is no closed form of that. With few exceptions better students do better, so that slopes are
# positive as a rule.

# %%
model = hl.parse("""
    Right(student, question)
    ability(student): real
    difficulty(question): real
    slope(question): real

    normal(ability(s) | 0, 1)
    normal(difficulty(q) | 0, 1)
    normal(slope(q) | 1, 0.5^2)
    bernoulli_logit(Right(s, q) | slope(q) * (ability(s) - difficulty(q)))
""")
graph = hl.ground(model, {"Right": answers[["student", "question", "right"]]})
posterior = hl.infer(graph, check=False)
print(graph)
print(posterior)

# %% [markdown]
# Every answer ties a student to a question, too densely for exact inference. The default took
# expectation propagation. Without `check=False` it would also compare that with draws, as far as
# there is time.
#
# ## How good is it?
#
# A spreadsheet would count right answers, each as much as the other, and scale these scores like
# abilities. It has no idea how sure it may be.

# %%
tables = {
    name: posterior.to_pandas(name).merge(truths.rename(columns={name: "truth"}))
    for name, truths in (("ability", students), ("difficulty", questions), ("slope", questions))
}
ability, slope = tables["ability"], tables["slope"]
score = answers.groupby("student").right.mean().loc[ability.student].to_numpy()
plain = (score - score.mean()) / score.std()
for what, estimate in (("model", ability["mean"]), ("scores", plain)):
    print(f"error of {what}: {np.sqrt(np.mean((estimate - ability.truth) ** 2)):.2f}")
covered = pd.concat([found.truth.between(found.q05, found.q95) for found in tables.values()])
print(f"90 % intervals that hold: {covered.sum()} of {len(covered)}")

# %% [markdown]
# Over twenty tests of 200 students and 40 questions the 90 % intervals should hold nine times in
# ten, and means and deviations should be those of long chains of NUTS: `python -m benchmarks
# gallery` counts and compares.

# %%
figure = Figure(figsize=(10.5, 4.2), layout="constrained")
left, right = figure.subplots(1, 2)
order = np.argsort(ability["mean"])
at = np.arange(len(ability))
left.vlines(
    at, ability.q05.iloc[order], ability.q95.iloc[order], color="#0072B2", label="model, 90 %"
)
left.plot(at, ability["mean"].iloc[order], "o", color="#0072B2", markersize=3)
left.plot(at, ability.truth.iloc[order], "_", color="black", markersize=7, label="truth")
left.plot(at, plain[order], "x", color="#E69F00", markersize=4, label="score")
left.set(xlabel="students, in order", ylabel="ability", xticks=[])
left.set_title("Students", loc="left")
left.legend(frameon=False)

right.axline((1, 1), slope=1, color="#8C8C8C", linewidth=1)
right.vlines(slope.truth, slope.q05, slope.q95, color="#D55E00", label="model, 90 %")
right.plot(slope.truth, slope["mean"], "o", color="#D55E00", markersize=4)
right.set(xlabel="true slope of a question", ylabel="estimate")
right.set_title("Questions: steep ones are worth keeping", loc="left")
right.legend(frameon=False)
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("abilities.png", dpi=150)

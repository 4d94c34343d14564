# %% [markdown]
# # Who can do it, when colleagues vote and teams deliver?
#
# Forty colleagues vote on each other: can this person weld? Some vote with care, some at random.
# Besides, teams were given jobs, and a job is usually done if at least one member of the team can
# weld. Who can, and whose votes are worth listening to?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

# %% [markdown]
# ## The data
#
# Three tables: votes, members of teams, and which jobs were done. We make them up, so that the
# truth is known.


# %%
def simulate(seed, num_people=40, num_votes=300, num_jobs=25):
    """People with their truths, votes, members of teams, and jobs."""
    rng = np.random.default_rng(seed)
    people = pd.DataFrame({"person": [f"p{n:02}" for n in range(num_people)]})
    people["can"] = rng.random(num_people) < 0.3
    people["careful"] = rng.random(num_people) < 0.7
    votes = people.merge(people, how="cross", suffixes=("_voter", ""))
    votes = votes[votes.person_voter != votes.person].sample(num_votes, random_state=rng)
    votes["says"] = rng.random(num_votes) < np.where(
        votes.careful_voter, np.where(votes.can, 0.9, 0.1), 0.5
    )
    votes = votes.rename(columns={"person_voter": "voter"})[["voter", "person", "says"]]
    teams = pd.concat(
        people.sample(rng.integers(2, 6), random_state=rng).assign(job=f"job{job}")
        for job in range(num_jobs)
    )
    jobs = teams.groupby("job", as_index=False).can.any()
    jobs["done"] = rng.random(num_jobs) < np.where(jobs.can, 0.9, 0.1)
    return people, votes, teams[["person", "job"]], jobs[["job", "done"]]


people, votes, teams, jobs = simulate(0)
print(votes.head(3).to_string(index=False))

# %% [markdown]
# ## The model
#
# Nothing but truth values. `where Asked(v, p)` makes a vote of each row there is, and not of all
# 1,600 pairs; `EXIST p` has only the members of a team, because `On` is closed. A careful vote is
# right with probability 0.9.

# %%
model = hl.parse("""
    Can(person)
    Careful(voter)
    Asked(voter, person)
    Says(voter, person)
    On(person, job)
    Done(job)

    bernoulli(Can(p) | 0.3)
    bernoulli(Careful(v) | 0.7)
    bernoulli(Says(v, p) | 0.5 + 0.4*(Careful(v) ^ Can(p)) - 0.4*(Careful(v) ^ !Can(p)))
        where Asked(v, p)
    bernoulli(Done(j) | 0.1 + 0.8*(EXIST p (On(p, j) ^ Can(p))))
""")
asked = votes[["voter", "person"]]
evidence = {"Asked": asked, "Says": votes, "On": teams, "Done": jobs}
graph = hl.ground(model, evidence, closed=["Asked", "On"])
print(graph)

# %% [markdown]
# ## The answer
#
# Votes tie people to voters in many loops, too many for exact inference. The default then runs
# particles, twice from different starts, and says what the difference may be.

# %%
posterior = hl.infer(graph, seed=0)
print(posterior)
print(posterior.trust.why)

# %% [markdown]
# ## How good is it?
#
# Counting votes treats all voters alike. Of those whom the model is 90 % sure of, at least about
# 90 % should be as it says; `python -m benchmarks gallery` counts that over twenty data sets.

# %%
can = posterior.to_pandas("Can").merge(people, on="person")
careful = posterior.to_pandas("Careful").merge(people, left_on="voter", right_on="person")
share = votes.groupby("person").says.mean().reindex(can.person, fill_value=0.5).to_numpy()
print(f"right about {np.mean((can.prob > 0.5) == can.can):.0%} of the people")
print(f"majority of votes: {np.mean((share > 0.5) == can.can):.0%}")
told = pd.concat([can.assign(truth=can.can), careful.assign(truth=careful.careful)])
sure = (told.prob > 0.9) | (told.prob < 0.1)
right = (told.prob > 0.5) == told.truth
print(f"sure and right: {(sure & right).sum()} of {sure.sum()}")

# %%
figure = Figure(figsize=(10.5, 4.2), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1.3, 1])
jitter = np.random.default_rng(0).uniform(-0.015, 0.015, len(can))
for truth, color, mark, label in (
    (True, "#0072B2", "o", "can weld"),
    (False, "#D55E00", "X", "cannot"),
):
    some = can.can == truth
    left.scatter(share[some] + jitter[some], can.prob[some], c=color, marker=mark, label=label)
left.axhline(0.5, color="#8C8C8C", linewidth=0.7)
left.axvline(0.5, color="#8C8C8C", linewidth=0.7)
left.set(xlabel="share of votes for a person", ylabel="probability that the person can weld")
left.set_title("People: votes weighed rather than counted", loc="left")
left.legend(frameon=False)

order = careful.sort_values("prob", ignore_index=True)
right.bar(
    order.index, order.prob, width=0.9,
    color=np.where(order.careful, "#0072B2", "#D55E00"),
)  # fmt: skip
right.set(xlabel="voters, in order", ylabel="probability that a voter is careful", xticks=[])
right.set_title("Voters: blue ones are careful", loc="left")
for axes in (left, right):
    axes.spines[["top", "right"]].set_visible(False)
figure.savefig("skills.png", dpi=150)

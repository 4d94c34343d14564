# %% [markdown]
# # Which topics are popular, and what should I read next?
#
# Readers rated some of 200 papers, most of those once or twice, and every paper has a main topic
# and a side topic. How popular is each topic, how good is each paper really, and which paper
# that nobody has rated yet is worth reading?

# %%
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import hylift as hl

# %% [markdown]
# ## Two data frames
#
# One says what papers are about, the other has the mean rating of those that were rated, and how
# uncertain that mean is: readers differ by 2 points, so the mean of n ratings has a standard
# error of 2 / √n. We make both up, and keep the truth for later. A few topics have most of the
# papers.

# %%
rng = np.random.default_rng(0)
names = "vision language robots games graphs speech search planning logic ethics music weather"
topics = pd.DataFrame({"topic": names.split()})
topics["truth"] = rng.normal(5, 1.5, len(topics))
share = 1 / np.arange(1, len(topics) + 1)
about = pd.DataFrame(
    [rng.choice(topics.topic, 2, replace=False, p=share / share.sum()) for _ in range(200)],
    columns=["main", "side"],
)
about.insert(0, "paper", [f"p{number}" for number in range(200)])

popular = topics.set_index("topic").truth
papers = about.assign(truth=0.7 * about.main.map(popular) + 0.3 * about.side.map(popular))
papers["truth"] += rng.normal(0, 1, len(papers))
papers["num_ratings"] = rng.choice([0, 1, 2, 4, 16], len(papers), p=[0.5, 0.2, 0.15, 0.1, 0.05])
rated = papers[papers.num_ratings > 0]
ratings = pd.DataFrame({"paper": rated.paper, "sd": 2 / np.sqrt(rated.num_ratings)})
ratings["rating"] = rng.normal(rated.truth, ratings.sd)
print(about.head(3).to_string(index=False))
print(ratings.head(3).round(2).to_string(index=False))

# %% [markdown]
# ## The model
#
# Topics are around 5, give or take 1.5, and a paper is around a weighted mean of its two topics,
# give or take 1. That is all; that ratings have errors is said by the column `sd`.

# %%
model = hl.parse("""
    About(paper, topic, topic)
    quality(paper): real
    trend(topic): real

    normal(trend(t) | 5, 1.5^2)
    About(p, main, side) * normal(quality(p) | 0.7*trend(main) + 0.3*trend(side), 1)
""")
graph = hl.ground(model, {"About": about, "quality": ratings}, closed=["About"])
posterior = hl.infer(graph)
print(posterior)

# %% [markdown]
# Everything is Gaussian, so `hl.infer` took exact inference. Answers are tables again, and join
# with what we have. Papers that nobody rated profit from their topics:

# %%
trend = posterior.table("trend").to_pandas().merge(topics, on="topic")
quality = posterior.table("quality").to_pandas().merge(papers, on="paper")
unrated = quality[quality.num_ratings == 0].nlargest(5, "mean")
print(unrated[["paper", "main", "side", "mean", "q05", "q95"]].round(1).to_string(index=False))

# %% [markdown]
# ## How good is it?
#
# For comparison, what a spreadsheet would say: a topic is the mean rating of the papers that
# have it as their main topic, a rated paper is its rating, and one without is the mean of all.


# %%
def error(estimate, truth):
    return np.sqrt(np.mean((estimate - truth) ** 2))


def num_covered(table):
    return f"{table.truth.between(table.q05, table.q95).sum()} of {len(table)}"


overall = ratings.rating.mean()
of_topic = ratings.merge(about, on="paper").groupby("main").rating.mean()
mean_rating = trend.topic.map(of_topic).fillna(overall)
seen = quality[quality.num_ratings > 0].merge(ratings, on="paper")
unseen = quality[quality.num_ratings == 0]
print("error of                model  spreadsheet")
for what, table, plain in (
    ("topics", trend, mean_rating),
    ("rated papers", seen, seen.rating),
    ("unrated papers", unseen, overall),
):
    print(f"{what:22} {error(table['mean'], table.truth):6.2f} {error(plain, table.truth):12.2f}")
print(f"90 % intervals that hold: {num_covered(trend)} topics, {num_covered(quality)} papers")

# %% [markdown]
# Papers with a single rating gain most: it is moved towards what the topics say (right), while
# sixteen ratings stand for themselves. The intervals of rare topics are wide (left). The model has
# the very numbers that made the data, which real data do not tell.

# %%
figure = Figure(figsize=(10.5, 4.2), layout="constrained")
left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
truth = {f"trend({row.topic})": row.truth for row in topics.itertuples()}
hl.plot_forest(posterior, "trend(*)", ax=left, sort=True, truth=truth)
left.set_title("Topics", loc="left", pad=24)

right.axline((5, 5), slope=1, color="#8C8C8C", linewidth=1)
for counts, color, mark in (
    ([1], "#E69F00", "x"),
    ([2, 4], "#56B4E9", "s"),
    ([16], "#0072B2", "o"),
):
    some = seen[seen.num_ratings.isin(counts)]
    label = f"{' or '.join(map(str, counts))} rating{'s' if counts != [1] else ''}"
    right.plot(some.rating, some["mean"], mark, color=color, markersize=5, label=label)
right.set(xlabel="mean rating of a paper", ylabel="estimated quality")
right.set_title("Papers: few ratings count for little", loc="left", pad=24)
right.spines[["top", "right"]].set_visible(False)
right.legend(frameon=False)
figure.savefig("popularity.png", dpi=150)

"""Two data frames and six lines of rules: how good are papers and topics, given some ratings?"""

import pandas as pd

import hylift as hl

topics = pd.DataFrame(  # which paper is about which topics
    {
        "paper": ["lifting", "lifting", "sampling", "kalman", "kalman", "survey"],
        "topic": ["logic", "inference", "inference", "inference", "filters", "filters"],
    }
)
ratings = pd.DataFrame(  # what readers gave some of the papers, and how sure the mean is
    {"paper": ["lifting", "sampling"], "rating": [8.5, 7.0], "sd": [0.5, 1.5]}
)

model = hl.parse("""
    About(paper, topic)
    quality(paper): real
    trend(topic): real
    0.2   quality(p) = 5
    0.05  trend(t) = 5
    1.0   About(p, t) * (quality(p) = trend(t))
""")

graph = hl.ground(model, {"About": topics, "quality": ratings}, closed=["About"])
posterior = hl.infer(graph)

print(posterior)
for predicate in ("quality", "trend"):
    print(posterior.table(predicate).to_pandas().round(3).to_string(index=False))

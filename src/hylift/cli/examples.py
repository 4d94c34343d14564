"""Examples that the help of each command shows; tests run them as they are printed."""

from __future__ import annotations


def _examples(*lines: str) -> str:
    """A block of help, which has an empty line between any two of its lines."""
    return "\n\n".join(["[bold]Examples[/bold]", *lines]) + "\n"


ALL = _examples(
    "hylift demo",
    "hylift check papers.mln",
    "hylift infer papers.mln --evidence facts.db --output result.json",
    "hylift ground papers.mln --evidence In=in.parquet --closed In --stats",
    "hylift explain papers.mln --evidence facts.db",
    "hylift infer model.uai --evidence model.uai.evid --task map",
    "hylift race model.uai --seconds 5",
    "hylift plot result.npz --query 'Popularity(*)'",
    "[bold]Exit codes[/bold]: 0 it worked, 1 the reader closed the output, 2 bad input or a "
    "file that cannot be written, 130 interrupted by Ctrl-C.",
)

CHECK = _examples(
    "hylift check papers.mln",
    "hylift check papers.mln --format",
    "hylift check papers.mln --output report.json",
    "hylift check papers.mln --bethe --evidence facts.db",
    "hylift check model.uai --bethe --evidence model.uai.evid",
)

GROUND = _examples(
    "hylift ground papers.mln --evidence facts.db --stats",
    "hylift ground papers.mln --evidence In=in.parquet --closed In",
    "hylift ground papers.mln --evidence 'In=all.csv\\[paper,topic]' --closed In",
    "hylift ground papers.mln --evidence facts.db --output sizes.csv",
    "hylift ground smokers.mln --output smokers.uai",
)

EXPLAIN = _examples(
    "hylift explain papers.mln --evidence facts.db",
    "hylift explain papers.mln -e In=in.parquet --closed In --figure classes.png",
    "hylift explain papers.mln -e facts.db --output classes.parquet",
    "hylift explain model.uai -e model.uai.evid --output explanation.json",
)

INFER = _examples(
    "hylift infer papers.mln --evidence facts.db --query 'Popularity(*)'",
    "hylift infer papers.mln -e In=in.parquet --closed In --output marginals.csv",
    "hylift infer papers.mln -e 'In=all.csv\\[paper,topic]' -c In",
    "hylift infer papers.mln -e facts.db --top 20 --by mean",
    "hylift infer papers.mln -e facts.db -q Popularity --arguments -o wide.csv",
    "hylift infer papers.mln -e facts.csv --unmatched ignore --task map",
    "hylift infer papers.mln -e facts.db --method bvi --components 5 --seconds 60",
    "hylift infer papers.mln -e facts.db --method bvi --check",
    "hylift infer papers.mln -e facts.db --method bvi --checkpoint run.ckpt",
    "hylift infer papers.mln -e facts.db --method bvi --save result.npz",
    "hylift infer model.uai --method bp --schedule residual --damping 0.2",
    "hylift infer model.uai --evidence model.uai.evid --output model.PR",
    "[bold]Outputs[/bold], by ending: .json (everything), .csv and .parquet (marginals, or the MAP "
    "assignment), .nc (draws, as NetCDF for ArviZ), .MAR, .PR, .MPE (UAI results); '-' prints "
    "JSON.",
)

RACE = _examples(
    "hylift race model.uai --evidence model.uai.evid",
    "hylift race papers.mln -e facts.db --seconds 5 --figure race.png",
    "hylift race papers.mln -e facts.db --methods exact,bvi,npvi --output race.csv",
)

PLOT = _examples(
    "hylift plot result.npz",
    "hylift plot result.npz --query 'Popularity(*)' --output popularity.png",
    "hylift plot result.npz other.npz --kind forest --query 'Trend(*)' --sort",
    "hylift plot result.npz other.npz --kind convergence --output way.pdf",
)

DEMO = _examples(
    "hylift demo",
    "hylift demo --figure marginals.png",
    "hylift demo --output demo.csv --seed 1",
)

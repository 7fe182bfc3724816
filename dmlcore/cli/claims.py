"""Command `claims`, which prints the claims of the sources with the verdicts of our studies."""

from __future__ import annotations

from typing import Annotated

import typer


def claims(
    source: Annotated[str, typer.Argument(help="Only sources whose name contains this text, for example Can")] = "",
    verdict: Annotated[str, typer.Option(help="Only rows with this verdict, for example 'not run'")] = "",
) -> None:
    """Print the claims of the sources, our numbers from the shipped results, and the verdict on each claim."""
    from dmlcore.experiments import source_claims

    rows = [
        row
        for row in source_claims.table()
        if source.lower() in row.claim.source.lower() and verdict in ("", row.verdict)
    ]
    for row in rows:
        print(f"{row.verdict.upper()}: {row.claim.claim} ({row.claim.source}, {row.claim.where})")
        facts = [row.numbers, row.reason, f"{row.runs} runs, study {row.study} on {row.data}" if row.data else ""]
        print("".join(f"    {fact}\n" for fact in facts if fact))
    print(source_claims.summary(rows))

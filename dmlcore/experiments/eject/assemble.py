"""Assembly of an ejected file: the definitions of the templates that a run needs, with the settings of its spec."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch

import dmlcore
from dmlcore import data, losses
from dmlcore.experiments.eject import photographs
from dmlcore.experiments.eject.support import LOSSES, EjectError, is_frozen, require_supported
from dmlcore.spec import RunSpec
from dmlcore.spec.optimisers import OPTIMISERS
from dmlcore.storage import atomic_files, checkpoint
from dmlcore.storage.runs import Run

TEMPLATE = Path(__file__).with_name("template.py")
FROZEN = Path(__file__).with_name("frozen_template.py")
CHOICE = "  # choice: "  # marks a line of the template that depends on the spec; its name follows
TRAIN_CLASSES = {"digits": 5, "toy": 16}  # classes that train if the classes are split


def write(run: Run, path: Path) -> Path:
    """Write a Python file that retrains `run` without dmlcore, and return its path.

    Raises:
        EjectError: If `path` does not end in .py, or if the run cannot be ejected.
    """
    if path.suffix != ".py":
        raise EjectError(f"--to {path}: end it in .py")
    text = source(run).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.replace(path, lambda file: file.write(text))
    return path


def source(run: Run) -> str:
    """Return the text of a Python file that retrains `run` without dmlcore.

    Raises:
        EjectError: If the run cannot be ejected.
    """
    saved = require_supported(run)
    weights = checkpoint.select_prefix(saved.tensors, "best") or checkpoint.select_prefix(saved.tensors, "model")
    values = _values(run.spec, saved.facts["threads"], digest_of(weights))
    lines, text = _lines(run.spec, bool(saved.facts.get("fused"))), TEMPLATE.read_text()
    if is_frozen(run.spec):
        constants, choices = photographs.values_and_lines(run)
        values, lines, text = values | constants, lines | choices, _joined(text)
    return _heading(run, saved.facts.get("torch", torch.__version__)) + _needed(_replaced(text, values, lines))


def _joined(text: str) -> str:
    """Return the template for frozen networks, with the definitions of `text`, the template for MLPs, inserted."""
    head, _, rest = FROZEN.read_text().partition("from dmlcore.experiments")
    common = text[text.index("SEED = ") : text.index("# ---- training")]
    return head + common + rest[rest.index("ROOT = ") :]


def digest_of(weights: Mapping[str, torch.Tensor]) -> str:
    """Return the SHA-256 of all weights in the order of their names, as an ejected file computes it."""
    return hashlib.sha256(b"".join(weights[name].numpy().tobytes() for name in sorted(weights))).hexdigest()


def _heading(run: Run, version: str) -> str:
    spec, scores = run.spec, run.scores()["trained"]
    needs = "torch, NumPy, and scikit-learn for the data" if spec.data.name == "digits" else "torch and NumPy"
    needs = "torch, NumPy and Pillow" if is_frozen(spec) else needs
    return f'''"""Run {run.id}: {losses.describe(spec.loss.name).title} loss on the data set {spec.data.name}.

Written by `dml eject` of dmlcore {dmlcore.__version__}; needs {needs}. With torch {version}
on the same kind of CPU it gives the weights of the run to the last bit; elsewhere, rounding may differ.
Test scores of the run: R@1 {scores["recall_at"]["1"]:.6f}, MAP@R {scores["map_at_r"]:.6f}.
"""

'''


def _replaced(template: str, values: Mapping[str, str], lines: Mapping[str, str]) -> str:
    """Return the template with other values of its constants and other lines at its choices.

    A choice without an entry in `lines` keeps its line, and "" removes it.
    """
    result = []
    for line in template.splitlines():
        name = line.split(" ")[0].rstrip(":,")
        code, mark, choice = line.partition(CHOICE)
        if name in values:
            result.append(values[name])
        elif not mark:
            result.append(line)
        elif replacement := lines.get(choice, code.lstrip()):
            result.append(" " * (len(code) - len(code.lstrip())) + replacement)
    return "\n".join(result) + "\n"


def _needed(text: str) -> str:
    """Return the statements of a module that `main` needs, with the comments above them, but not its docstring."""
    lines, nodes = text.splitlines(), [node for node in ast.parse(text).body if not isinstance(node, ast.Expr)]
    by_name = {name: node for node in nodes for name in _names(node)}
    waiting, needed = ["main", "annotations"], set[str]()
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            waiting.extend(node.id for node in ast.walk(by_name[name]) if isinstance(node, ast.Name))
    result, header, end = list[str](), list[str](), nodes[0].lineno - 1
    for node in nodes:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1
        above, end = lines[end:first], node.end_lineno or first
        header = [line for line in above if line.startswith("#")] or header
        blank = [line for line in above if not line]
        if isinstance(node, ast.If) or needed.intersection(_names(node)):
            result += [*blank, *header, *lines[first:end]]
            header = []
    return "\n".join(result) + "\n"


def _names(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))


def _values(spec: RunSpec, threads: int, digest: str) -> dict[str, str]:
    """Return the statements that define the constants, by the first name in each."""
    constants = {
        "SEED": spec.seed,
        "THREADS": threads,
        "HIDDEN": list(spec.model.hidden),
        "EMBEDDING_DIM": spec.model.embedding_dim,
        "CLASSES_PER_BATCH, SAMPLES_PER_CLASS": f"{spec.batch.classes}, {spec.batch.samples}",
        "STEPS": spec.schedule.steps,
        "VALIDATE_EVERY": spec.schedule.validate_every,
        "LEARNING_RATE": spec.optimiser.learning_rate,
        "DIGEST": f'"{digest}"  # SHA-256 of the weights of the run',
    }
    return {name.split(",")[0]: f"{name} = {value}" for name, value in constants.items()}


def _lines(spec: RunSpec, fused: bool) -> dict[str, str]:
    """Return the line of each choice in the template, by name; `fused`: True if a fused optimiser trained the run."""
    schedule, entry = spec.schedule, OPTIMISERS[spec.optimiser.name]
    arguments = (
        {"lr": "LEARNING_RATE"} | entry.arguments(spec.optimiser) | {"weight_decay": spec.optimiser.weight_decay}
    )
    arguments |= {"fused": True} if fused else {}
    factor = {
        "none": "",
        "step": f"{schedule.decay_factor} ** ((step - 1) // {schedule.decay_every})",
        "cosine": "((1 + math.cos(math.pi * ((step - 1) / STEPS))) / 2)",
    }[schedule.decay]
    decay = {} if factor else dict.fromkeys(("rates", "decay", "factor"), "")
    monitored = "precision" if schedule.monitor == "map_at_r" else "recall"
    standardised = "float(inputs[train].mean()), float(inputs[train].std())" if spec.data.standardize else "0.0, 1.0"
    return {
        "data": f"inputs, labels = {spec.data.name}()",
        **_split_lines(spec),
        "standardize": f"mean, std = {standardised}",
        "embedding": "return F.normalize(x, dim=1)" if spec.model.normalize else "return x",
        "head": "return F.normalize(linear(x), dim=1)" if spec.model.normalize else "return linear(x)",
        **_loss_lines(spec),
        "optimiser": f"optimiser = torch.optim.{entry.torch_class}(parameters, {_keywords(arguments)})",
        "factor": f'group["lr"] = rate * {factor}',
        **decay,
        "monitor": f"if {monitored} > best_score:",
        "monitored": f"best_score = {monitored}",
    }


def _split_lines(spec: RunSpec) -> dict[str, str]:
    if is_frozen(spec):  # `photographs` has the split
        return {}
    info, count = data.describe(spec.data.name), TRAIN_CLASSES[spec.data.name]
    test = {
        "samples": "hold_out_samples(labels, np.arange(len(labels)), 0.5)",
        "classes": f"np.flatnonzero(labels < {count}), np.flatnonzero(labels >= {count})",
    }[spec.data.split or info.split]
    validation = {
        "samples": "hold_out_samples(labels, rest, 0.2)",
        "classes": "hold_out_classes(labels, rest)",
        "none": "rest, rest[:0]",
    }[spec.data.validation or info.validation]
    return {"test": f"rest, test = {test}", "validation": f"train, validation = {validation}"}


def _loss_lines(spec: RunSpec) -> dict[str, str]:
    chosen, values = LOSSES[spec.loss.name], losses.describe(spec.loss.name).resolve(spec.loss.parameters)
    arguments = _keywords({key: values[key] for key in chosen.arguments})
    proxies = "proxies, " if chosen.proxies else ""
    rate = spec.loss.learning_rate or "LEARNING_RATE"
    divisor = {"mean_nonzero": "return total / active.sum().clamp(min=1)"}
    lines = {"rate of proxies": f'parameters.append({{"params": [proxies], "lr": {rate}}})'}
    if not chosen.proxies:
        lines = dict.fromkeys(("seed of proxies", "classes", "proxies", "rate of proxies"), "")
    lines |= {"divisor": divisor[spec.loss.reduction]} if spec.loss.reduction in divisor else {}
    margins = f"{spec.loss.tcm_m_pos}, {spec.loss.tcm_m_neg}"
    term = f"loss = loss + {spec.loss.tcm} * threshold_consistent_margin(z, y[batch], {margins})"
    embeddings = "z := network(x[batch])" if spec.loss.tcm else "network(x[batch])"
    lines |= {"loss": f"loss = {spec.loss.name}({embeddings}, y[batch], {proxies}{arguments})"}
    return lines | {"tcm": term if spec.loss.tcm else ""}


def _keywords(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{keyword}={value}" for keyword, value in arguments.items())

"""Measures the language of comments and pages, folder by folder. CONTRIBUTING.md has the rules.

tools/language_budget.json holds the counts above the goal that a folder may still have, and the
commit after which subjects are checked. Budgets only go down.
"""

import json
import math
import re
import subprocess

CODE = (".h", ".cc", ".c", ".cu", ".def")
SKIPPED = ("docs/references/", "docs/flags.md", "build/")
LINE_COMMENT = re.compile(r"^\s*//+(?!\s*(?:clang-format|NOLINT))\s?(.*)$")
TRAILING_COMMENT = re.compile(r'^[^"]*[^":]//(?!\s*NOLINT)\s?(.*)$')
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
WHAT = re.compile(r"\bwhat\b", re.IGNORECASE)
WHO = re.compile(r"\b(?:who|whose|whom|whoever)\b", re.IGNORECASE)
HE = re.compile(r"\b(?:he|him|his)\b", re.IGNORECASE)
HEADLESS = re.compile(r"(?:What|Who|Whose|The same|Of|That of|Those of|As that)\b")
SENTENCE_END = re.compile(r"[.:;?!](?=\s|$)|\n\s*\n")
SUBJECT_FAULTS = (
    (lambda subject: len(subject) > 60, "is longer than 60 characters"),
    (lambda subject: WHAT.search(subject) or WHO.search(subject), 'contains "what" or "who"'),
)

# Per 10 000 words; the last two in per cent of comments or sentences.
MOST = {"what": 15, "who": 6, "he": 0, "headless": 1, "long": 1}
MOST_LONG_IN_PAGES = 3
LONG_SENTENCE_WORDS = 35


def comments_of(text):
    """The comments of a source: each a run of // lines, or the end of a line of code."""
    comments, run = [], []
    for line in text.splitlines():
        whole = LINE_COMMENT.match(line)
        if whole:
            run.append(whole.group(1))
            continue
        if run:
            comments.append("\n".join(run))
            run = []
        trailing = TRAILING_COMMENT.match(line)
        if trailing:
            comments.append(trailing.group(1))
    if run:
        comments.append("\n".join(run))
    return comments


def prose_of(text):
    """A page without code and tables."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    # The items of a list and titles are sentences of their own.
    return re.sub(r"^(\s*(?:[-*]|\d+\.|#+) )", r"\n\n\1", text, flags=re.MULTILINE)


def sentences_of(text):
    return [len(WORD.findall(part)) for part in SENTENCE_END.split(text)]


class Counts(dict):
    """The counts of a folder's comments, or of its pages."""

    def __init__(self):
        super().__init__(words=0, what=0, who=0, he=0, pieces=0, headless=0, sentences=0, long=0)

    def add(self, text):
        self["words"] += len(WORD.findall(text))
        self["what"] += len(WHAT.findall(text))
        self["who"] += len(WHO.findall(text))
        self["he"] += len(HE.findall(text))
        self["pieces"] += 1
        self["headless"] += bool(HEADLESS.match(text.lstrip()))
        lengths = [length for length in sentences_of(text) if length]
        self["sentences"] += len(lengths)
        self["long"] += sum(length > LONG_SENTENCE_WORDS for length in lengths)

    def allowed(self, kind, is_pages):
        """The most of `kind` that a folder of this size may have."""
        if kind in ("what", "who", "he"):
            return math.ceil(MOST[kind] * self["words"] / 10000)
        if kind == "headless":
            return math.ceil(MOST[kind] * self["pieces"] / 100)
        per_cent = MOST_LONG_IN_PAGES if is_pages else MOST[kind]
        return math.ceil(per_cent * self["sentences"] / 100)


def folder_of(path):
    """platform/sim for platform/sim/memory/x.h, platform for platform/x.h."""
    parts = path.parts[:-1]
    return "/".join(parts[:2]) or "."


def measure(root, folders):
    """{(folder, "comments" or "pages"): Counts}."""
    result = {}
    paths = list(root.glob("*.md")) + list(root.glob("docs/**/*.md"))
    for folder in folders:
        paths += [p for p in (root / folder).rglob("*") if p.suffix in (*CODE, ".md")]
    for path in sorted(paths):
        relative = path.relative_to(root)
        if str(relative).startswith(SKIPPED):
            continue
        text = path.read_text(encoding="utf-8")
        is_page = path.suffix == ".md"
        counts = result.setdefault((folder_of(relative), "pages" if is_page else "comments"), Counts())
        for piece in [prose_of(text)] if is_page else comments_of(text):
            counts.add(piece)
    return result


def excess(root, folders):
    """{"folder comments what": count} of the counts above the goal."""
    result = {}
    for (folder, sort), counts in sorted(measure(root, folders).items()):
        for kind in MOST:
            if kind == "headless" and sort == "pages":
                continue
            if counts[kind] > counts.allowed(kind, sort == "pages"):
                result[f"{folder} {sort} {kind}"] = counts[kind]
    return result


def faults(root, folders):
    """Yields a fault for each count above the goal and above its budget."""
    path = root / "tools" / "language_budget.json"
    if not path.exists():
        return
    budget = json.loads(path.read_text(encoding="utf-8"))
    for name, count in excess(root, folders).items():
        if count > budget["counts"].get(name, 0):
            yield f"{path}: {name}: {count}, the budget is {budget['counts'].get(name, 0)}"
    yield from faults_of_subjects(root, budget["subjects_since"])


def faults_of_subjects(root, since):
    """Yields a fault for each commit subject after `since` that breaks a rule."""
    command = ["git", "-C", str(root), "log", "--no-merges", "--format=%h %s", f"{since}..HEAD"]
    try:
        log = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return
    # A tree without history has no subjects to check.
    for line in log.stdout.splitlines() if log.returncode == 0 else []:
        commit, _, subject = line.partition(" ")
        for is_fault, text in SUBJECT_FAULTS:
            if is_fault(subject):
                yield f"commit {commit}: the subject {text}"


def lower_budget(root, folders):
    """Lowers the budget to today's counts where they fell."""
    path = root / "tools" / "language_budget.json"
    budget = json.loads(path.read_text(encoding="utf-8"))
    now = excess(root, folders)
    budget["counts"] = {name: min(count, now[name]) for name, count in budget["counts"].items()
                        if name in now}
    path.write_text(json.dumps(budget, indent=2) + "\n", encoding="utf-8")


def report(root, folders):
    """A table: for each folder its words, and each count with the most that is allowed."""
    lines = [f"{'folder':<28}{'words':>8}" + "".join(f"{kind:>10}" for kind in MOST)]
    for (folder, sort), counts in sorted(measure(root, folders).items()):
        cells = "".join(f"{counts[kind]}/{counts.allowed(kind, sort == 'pages')}".rjust(10)
                        for kind in MOST)
        lines.append(f"{folder + ' ' + sort:<28}{counts['words']:>8}{cells}")
    return "\n".join(lines)

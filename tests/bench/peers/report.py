"""Ratios as a table people read (Markdown), as data (JSON) and as a picture (SVG)."""

import html
import json

OURS = "vivace"


def kernel_rows(results):
    """One row per case, format: ours and llama.cpp's tokens a second, the ratio, the fraction of the limit."""
    rows = []
    for case, items in results.medians("kernel").items():
        for item, engines in items.items():
            for (engine, fmt), own in engines.items():
                if engine != OURS:
                    continue
                tokens = int(item)
                row = {"case": f"prompt {item}" if case == "prompt" else f"decode B={item}, context {case.partition('@')[2]}",
                       "format": fmt, "vivace_tok_s": tokens / own["seconds"],
                       "fraction_of_limit": own["fraction_of_limit"], "binds": own["binds"],
                       "outside_kernels": own["outside_kernels"]}
                for (peer, peer_fmt), theirs in engines.items():
                    if peer != OURS and peer_fmt == fmt:
                        row["peer"], row["peer_tok_s"] = peer, tokens / theirs["seconds"]
                        row["ratio"] = theirs["seconds"] / own["seconds"]
                rows.append(row | {"order": (case != "prompt", int(case.partition("@")[2] or 0), tokens)})
    rows.sort(key=lambda row: row["order"])
    return [{name: value for name, value in row.items() if name != "order"} for row in rows]


SERVED = ("output_tok_s", "ttft_ms_mean", "ttft_ms_p90", "tpot_ms_mean", "tpot_ms_p90")


def served_rows(results):
    """One row per case, engine and format; `ratio` is our best format's throughput over the row's."""
    rows = []
    for case, items in results.medians("served").items():
        engines = items["all"]
        ours = [m["output_tok_s"] for (engine, _), m in engines.items() if engine == OURS]
        for (engine, fmt), metrics in sorted(engines.items(), key=lambda e: -e[1]["output_tok_s"]):
            row = {"case": case, "engine": engine, "format": fmt, "client_cpu": metrics["client_cpu"]}
            row |= {name: metrics[name] for name in SERVED}
            if ours and engine != OURS:
                row["ratio"] = max(ours) / metrics["output_tok_s"]
            rows.append(row)
    return rows


def number(value):
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(number(cell) for cell in row) + " |" for row in rows])


def markdown(results):
    last = results.data["runs"][-1]
    parts = [f"{last['machine']['cpu']}, {last['machine']['cpus']} CPUs ({', '.join(last['machine']['instructions'])}), "
             f"{last['date']}, `{last['command']}`"]
    kernel, served = kernel_rows(results), served_rows(results)
    if kernel:
        head = ("case", "format", "Vivace tok/s", "llama.cpp tok/s", "ratio", "of limit", "binds", "outside kernels")
        parts.append(table(head, [
            (r["case"], r["format"], r["vivace_tok_s"], r.get("peer_tok_s"), r.get("ratio"), r["fraction_of_limit"],
             r["binds"], f"{r['outside_kernels'] * 100:.1f} %") for r in kernel]))
    if served:
        head = ("in/out, clients", "engine", "format", "output tok/s", "Vivace's best over it", "TTFT ms, mean", "p90",
                "TPOT ms, mean", "p90", "client CPU")
        parts.append(table(head, [
            (r["case"], r["engine"], r["format"], r["output_tok_s"], r.get("ratio"), r["ttft_ms_mean"],
             r["ttft_ms_p90"], r["tpot_ms_mean"], r["tpot_ms_p90"], f"{r['client_cpu'] * 100:.1f} %") for r in served]))
    return "\n\n".join(parts) + "\n"


# -- picture ----------------------------------------------------------------------------------------

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px }  .faint { fill: #6e7781 }
  .ours { fill: #0969da }  .theirs { fill: #8c959f }  .one { stroke: #8c959f; stroke-dasharray: 3 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }  .faint { fill: #8d96a0 }  .ours { fill: #4493f8 }  .theirs { fill: #6e7681 } }
"""
WIDTH, LABEL, BAR, GAP = 900, 270, 16, 6


def bars(title, rows, top):
    """rows: (label, value, text, class). Horizontal bars scaled to the longest."""
    most = max(value for _, value, _, _ in rows)
    out = [f'<text class="title" x="12" y="{top + 16}">{html.escape(title)}</text>']
    y = top + 30
    for label, value, text, kind in rows:
        width = max(1, value / most * (WIDTH - LABEL - 170))
        out.append(f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">{html.escape(label)}</text>')
        out.append(f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>')
        out.append(f'<text class="faint" x="{LABEL + width + 6:.1f}" y="{y + 13}">{html.escape(text)}</text>')
        y += BAR + GAP
    return out, y + 18


def svg(results):
    body, y = [], 8
    kernel = [r for r in kernel_rows(results) if "ratio" in r]
    if kernel:
        rows = [(f"{r['case']}, {r['format']}", r["ratio"], f"{r['ratio']:.1f}x  ({r['vivace_tok_s']:.0f} tok/s)", "ours")
                for r in kernel]
        part, y = bars("Vivace over llama.cpp, same file and threads, in process", rows, y)
        body += part
    by_case = {}
    for row in served_rows(results):
        by_case.setdefault(row["case"], []).append(row)
    for case, rows in by_case.items():
        part, y = bars(f"Output tokens a second, {case}",
                       [(f"{r['engine']} {r['format']}", r["output_tok_s"],
                         f"{r['output_tok_s']:.0f}   TTFT {r['ttft_ms_mean']:.0f} ms, TPOT {r['tpot_ms_mean']:.1f} ms",
                         "ours" if r["engine"] == OURS else "theirs") for r in rows], y)
        body += part
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img">'
            f"<title>Vivace and its peers</title><style>{STYLE}</style>\n" + "\n".join(body) + "\n</svg>\n")


def write(results, folder):
    data = {"run": results.data["runs"][-1], "kernel": kernel_rows(results), "served": served_rows(results)}
    (folder / "ratios.json").write_text(json.dumps(data, indent=1))
    (folder / "ratios.md").write_text(markdown(results))
    (folder / "ratios.svg").write_text(svg(results))

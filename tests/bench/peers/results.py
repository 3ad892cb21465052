"""The results file: every measurement as it was taken, so that a run can be broken off and taken up again."""

import datetime
import json
import os
import pathlib
import platform
import statistics


def machine():
    names = [line.split(": ", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    told = [flag for flag in ("avx2", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8") if f" {flag}" in flags]
    return {"cpu": names[0] if names else platform.machine(), "cpus": len(os.sched_getaffinity(0)),
            "instructions": told, "system": platform.platform()}


class Results:
    """Entries by (level, case, engine, format, round). A case's metrics are a dict of dicts: item -> metric ->
    number; kernel cases have an item per prompt length or batch, served ones the item "all"."""

    def __init__(self, path, command):
        self.path = pathlib.Path(path)
        self.data = {"runs": [], "entries": {}}
        if self.path.exists():
            self.data = json.loads(self.path.read_text())
            if self.data["runs"] and self.data["runs"][-1]["machine"] != machine():
                raise SystemExit(f"{path} is of another machine; give --fresh or another --results")
        self.data["runs"].append({"command": command, "machine": machine(), "date": str(datetime.date.today())})

    @staticmethod
    def key(level, case, engine, fmt, round_):
        return "|".join((level, case, engine, fmt, str(round_)))

    def items(self, *key):
        """The items measured already."""
        return set(self.data["entries"].get(self.key(*key), {"metrics": {}})["metrics"])

    def put(self, *key, metrics):
        entry = self.data["entries"].setdefault(self.key(*key), {"metrics": {}})
        entry["at"] = datetime.datetime.now().isoformat(timespec="seconds")
        entry["metrics"] |= metrics
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.data, indent=1))
        part.rename(self.path)

    def drop(self, engine):
        """Forgets an engine's entries: after it was built anew they are of another one."""
        self.data["entries"] = {k: v for k, v in self.data["entries"].items() if k.split("|")[2] != engine}

    def medians(self, level):
        """{case: {item: {(engine, format): {metric: median}}}}"""
        collected = {}
        for key, entry in self.data["entries"].items():
            kind, case, engine, fmt, _ = key.split("|")
            if kind != level:
                continue
            for item, metrics in entry["metrics"].items():
                place = collected.setdefault(case, {}).setdefault(item, {}).setdefault((engine, fmt), {})
                for metric, number in metrics.items():
                    place.setdefault(metric, []).append(number)
        return {case: {item: {who: {metric: middle(values) for metric, values in metrics.items()}
                              for who, metrics in engines.items()}
                       for item, engines in items.items()}
                for case, items in collected.items()}


def middle(values):
    return statistics.median(values) if isinstance(values[0], (int, float)) else statistics.mode(values)

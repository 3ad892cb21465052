"""What is measured, as data."""

import dataclasses
import random

VOCAB = range(100, 40_000)  # ordinary tokens of any vocabulary we meet


@dataclasses.dataclass(frozen=True)
class KernelCase:
    """Either prompts of these lengths, or decoding steps of these batches at one context."""

    prompts: tuple = ()
    batches: tuple = ()
    context: int = 0

    @property
    def key(self):
        return "prompt" if self.prompts else f"decode@{self.context}"

    def lacking(self, measured):
        """What is left of it when the items in `measured` are known; None if nothing is."""
        left = dataclasses.replace(self, prompts=tuple(n for n in self.prompts if str(n) not in measured),
                                   batches=tuple(n for n in self.batches if str(n) not in measured))
        return left if left.prompts or left.batches else None


@dataclasses.dataclass(frozen=True)
class ServedCase:
    input: int
    output: int
    concurrency: int

    @property
    def key(self):
        return f"{self.input}/{self.output} c={self.concurrency}"

    def lacking(self, measured):
        return None if "all" in measured else self

    def prompts(self, seed):
        """Token ids; no two alike, so that no cache helps."""
        rng = random.Random(f"{self.key} {seed}")
        count = max(8, 2 * self.concurrency)
        return [[rng.choice(VOCAB) for _ in range(self.input)] for _ in range(count)]


WARM_UP = ServedCase(104, 8, 2)  # of an engine just started, not counted

PROMPTS = (32, 128, 512, 2048)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
CONTEXTS = (128, 1024, 4096)
SHAPES = ((104, 64), (768, 128), (128, 768))
CONCURRENCIES = (1, 8, 32, 64)


QUICK = {"prompts": (512,), "batches": (1, 8), "contexts": (128,), "shapes": SHAPES[:1], "clients": (1, 8)}
ALL = {"prompts": PROMPTS, "batches": BATCHES, "contexts": CONTEXTS, "shapes": SHAPES, "clients": CONCURRENCIES}


def kernel_cases(chosen):
    prompts = [KernelCase(prompts=tuple(chosen["prompts"]))] if chosen["prompts"] else []
    contexts = chosen["contexts"] if chosen["batches"] else ()
    return prompts + [KernelCase(batches=tuple(chosen["batches"]), context=c) for c in contexts]


def served_cases(chosen):
    return [ServedCase(i, o, c) for c in chosen["clients"] for i, o in chosen["shapes"]]

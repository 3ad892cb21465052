// Prometheus text to numbers, and what two scrapes say together. Pure: no page, no network.

const kLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})? (\S+)$/;

const number = (text) => ({ "+Inf": Infinity, "-Inf": -Infinity })[text] ?? Number(text);

// {name: value} of samples without buckets, summed over labels; {name: [[bound, count], ...]} of histograms.
export function parseMetrics(text) {
  const values = new Map();
  const buckets = new Map();
  for (const line of text.split("\n")) {
    const match = kLine.exec(line);
    if (!match) continue;
    const [, name, labels = "", value] = match;
    const bound = name.endsWith("_bucket") && /[{,]le="([^"]*)"/.exec(labels);
    if (bound) {
      const histogram = name.slice(0, -"_bucket".length);
      if (!buckets.has(histogram)) buckets.set(histogram, []);
      buckets.get(histogram).push([number(bound[1]), number(value)]);
    } else {
      values.set(name, (values.get(name) ?? 0) + number(value));
    }
  }
  return { values, buckets };
}

// A counter's increase per second; null before there are two scrapes.
export function rate(before, now, name, seconds) {
  if (!before || seconds <= 0) return null;
  const grown = (now.values.get(name) ?? 0) - (before.values.get(name) ?? 0);
  return grown < 0 ? null : grown / seconds; // less: the server began anew
}

// The quantile of what a histogram took between two scrapes, within its bucket linearly; null if nothing.
export function quantile(before, now, name, q) {
  const last = now.buckets.get(name);
  if (!last) return null;
  const first = new Map(before?.buckets.get(name) ?? []);
  const counts = last.map(([bound, count]) => [bound, count - (first.get(bound) ?? 0)]);
  const all = counts[counts.length - 1][1];
  if (!(all > 0)) return null;
  let lower = 0;
  let below = 0;
  for (const [bound, count] of counts) {
    if (count >= q * all) {
      if (bound === Infinity) return lower;
      return lower + ((bound - lower) * (q * all - below)) / (count - below);
    }
    [lower, below] = [bound, count];
  }
  return lower;
}

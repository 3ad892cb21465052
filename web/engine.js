// The engine's view: gauges, curves and requests, read once a second while it is looked at.
import { getJson, getText } from "./api.js";
import { Chart } from "./chart.js";
import { byId, element, notice } from "./dom.js";
import { parseMetrics, quantile, rate } from "./metrics.js";

const kPeriodMs = 1000;
const kWindow = 10; // scrapes over which rates and quantiles are taken

const ms = (seconds) => (seconds < 1 ? `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms` : `${seconds.toFixed(2)} s`);
const count = (value) => (value >= 100 ? Math.round(value).toString() : value.toFixed(1));

const kGauges = [
  ["Running", ({ now }) => now.values.get("vllm:num_requests_running") ?? 0],
  ["Waiting", ({ now }) => now.values.get("vllm:num_requests_waiting") ?? 0],
  ["Output tokens/s", (s) => shown(rate(s.before, s.now, "vllm:generation_tokens_total", s.seconds), count)],
  ["Prompt tokens/s", (s) => shown(rate(s.before, s.now, "vllm:prompt_tokens_total", s.seconds), count)],
  ["KV cache in use", ({ now }) => `${(100 * (now.values.get("vllm:kv_cache_usage_perc") ?? 0)).toFixed(1)} %`],
  ["Found in the cache", ({ now }) => {
    const asked = now.values.get("vllm:prefix_cache_queries_total") ?? 0;
    return asked ? `${((100 * now.values.get("vllm:prefix_cache_hits_total")) / asked).toFixed(0)} %` : "–";
  }],
];

const shown = (value, format) => (value === null ? "–" : format(value));

const charts = [
  [new Chart("Output tokens per second", { all: "#2a7" }, count),
    (s) => ({ all: rate(s.before, s.now, "vllm:generation_tokens_total", s.seconds) })],
  [new Chart("Time to first token", { p50: "#28d", p90: "#d62" }, ms), quantiles("vllm:time_to_first_token_seconds")],
  [new Chart("Inter-token latency", { p50: "#28d", p90: "#d62" }, ms), quantiles("vllm:inter_token_latency_seconds")],
  [new Chart("Sequences", { running: "#2a7", waiting: "#d62" }, count), ({ now }) => ({
    running: now.values.get("vllm:num_requests_running"), waiting: now.values.get("vllm:num_requests_waiting"),
  })],
];

function quantiles(name) {
  return (s) => ({ p50: quantile(s.before, s.now, name, 0.5), p90: quantile(s.before, s.now, name, 0.9) });
}

const scrapes = []; // {at, now}

async function readMetrics() {
  scrapes.push({ at: performance.now(), now: parseMetrics(await getText("/metrics")) });
  if (scrapes.length > kWindow) scrapes.shift();
  const [first, last] = [scrapes[0], scrapes[scrapes.length - 1]];
  const sample = {
    before: scrapes.length > 1 ? first.now : null, now: last.now, seconds: (last.at - first.at) / 1000,
  };
  byId("gauges").replaceChildren(...kGauges.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, String(value(sample))))));
  for (const [chart, values] of charts) chart.push(values(sample));
}

function requestRow(request) {
  const open = element("button", { type: "button" }, request.id);
  open.addEventListener("click", () => showTimeline(request.id));
  return element("tr", {},
    element("td", {}, open), element("td", {}, request.state), element("td", {}, String(request.prompt_tokens)),
    element("td", {}, String(request.output_tokens)), element("td", {}, request.times.total_ms === null ? "–" : ms(request.times.total_ms / 1000)));
}

async function readRequests() {
  const { data } = await getJson("/v1/requests");
  const focused = document.activeElement?.textContent;
  byId("requests").replaceChildren(...data.map(requestRow));
  // Redrawing must not take the focus from who walks the list by keyboard.
  for (const button of byId("requests").querySelectorAll("button")) {
    if (button.textContent === focused) button.focus();
  }
}

async function showTimeline(id) {
  const view = byId("timeline");
  try {
    const timeline = await getJson(`/v1/requests/${encodeURIComponent(id)}/timeline`);
    view.replaceChildren(
      element("h2", {}, id), element("p", {}, timeline.summary),
      element("ol", {}, ...timeline.events.map((event) =>
        element("li", {}, `${ms(event.at_ms / 1000)}: ${event.what}`))));
    view.hidden = false;
  } catch (error) {
    notice(error.message);
  }
}

let timer = 0;
async function tick() {
  try {
    await readMetrics();
    await readRequests();
    notice("");
  } catch (error) {
    notice(`The engine's figures could not be read: ${error.message}`);
  }
  if (timer) timer = setTimeout(tick, kPeriodMs);
}

export function showEngine(on) {
  clearTimeout(timer);
  timer = 0;
  if (!on) return;
  if (!byId("charts").firstChild) byId("charts").append(...charts.map(([chart]) => chart.node));
  timer = setTimeout(tick, 0);
}

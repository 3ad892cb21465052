// A line chart of the last minutes, as SVG.
import { element } from "./dom.js";

const kPoints = 180;
const kWidth = 360;
const kHeight = 100;
const kTop = 14; // room for the greatest value's text

export class Chart {
  // `lines`: {name: colour}; `format` writes a value.
  constructor(title, lines, format) {
    this.format = format;
    this.series = Object.fromEntries(Object.keys(lines).map((name) => [name, []]));
    this.shapes = Object.fromEntries(Object.entries(lines).map(([name, colour]) => [
      name, element("polyline", { fill: "none", stroke: colour, "stroke-width": 1.5 }),
    ]));
    this.greatest = element("text", { x: 4, y: 11 });
    this.caption = element("figcaption");
    this.title = title;
    this.node = element("figure", {},
      element("svg", { viewBox: `0 0 ${kWidth} ${kHeight}`, preserveAspectRatio: "none", role: "img", "aria-label": title },
        ...Object.values(this.shapes), this.greatest),
      this.caption);
  }

  // null: no value at this moment; the line pauses at the last one.
  push(values) {
    for (const [name, points] of Object.entries(this.series)) {
      points.push(values[name] ?? null);
      if (points.length > kPoints) points.shift();
    }
    this.draw();
  }

  draw() {
    const seen = Object.values(this.series).flat().filter((value) => value !== null);
    const most = Math.max(...seen, 1e-9);
    const last = [];
    for (const [name, points] of Object.entries(this.series)) {
      const place = (value, i) =>
        `${((i + kPoints - points.length) * kWidth) / (kPoints - 1)},${kHeight - 2 - (value / most) * (kHeight - kTop - 2)}`;
      this.shapes[name].setAttribute("points",
        points.map((value, i) => (value === null ? "" : place(value, i))).filter(Boolean).join(" "));
      const value = points.findLast((point) => point !== null);
      last.push(`${name} ${value === undefined ? "none yet" : this.format(value)}`);
    }
    this.greatest.textContent = seen.length ? this.format(most) : "";
    this.caption.textContent = `${this.title}: ${last.join(", ")}`;
  }
}

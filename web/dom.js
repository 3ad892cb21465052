// The few things this page needs of the DOM. Text is only ever set as text, never as markup.

export const byId = (id) => document.getElementById(id);

const kSvg = "http://www.w3.org/2000/svg";
const kSvgTags = new Set(["svg", "polyline", "text", "line"]);

export function element(tag, attributes = {}, ...children) {
  const made = kSvgTags.has(tag) ? document.createElementNS(kSvg, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function notice(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

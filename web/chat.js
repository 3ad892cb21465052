// The chat: what was said, the composer, the parameters.
import { setKey, getKey, stream } from "./api.js";
import { Conversation, takeDelta } from "./conversation.js";
import { element, byId, notice } from "./dom.js";

const conversation = new Conversation();
let running = null; // AbortController of the answer under way

const kNumbers = ["temperature", "top_p", "top_k", "max_tokens", "seed"];

function parsedOr(id, what) {
  const text = byId(id).value.trim();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`the ${what} is not JSON: ${error.message}`);
  }
}

function requestBody() {
  const body = {
    messages: conversation.request(byId("system").value.trim()),
    stream: true,
    stream_options: { include_usage: true },
  };
  for (const name of kNumbers) {
    if (byId(name).value !== "") body[name] = Number(byId(name).value);
  }
  const schema = parsedOr("schema", "JSON schema");
  if (schema) body.response_format = { type: "json_schema", json_schema: { name: "answer", strict: true, schema } };
  const tools = parsedOr("tools", "list of tools");
  if (tools) body.tools = tools;
  return body;
}

function toolCallView(message, call) {
  const answer = element("input", { type: "text", "aria-label": `Result of ${call.function.name}`, placeholder: "its result" });
  const give = element("button", { type: "button" }, "Give result");
  give.addEventListener("click", () => giveResult(message, call, answer.value));
  return element("div", {}, element("pre", {}, `${call.function.name}(${call.function.arguments})`), answer, give);
}

// Once every call of a message has its result the model goes on.
function giveResult(message, call, content) {
  if (running) return;
  conversation.add({ role: "tool", tool_call_id: call.id, content });
  render();
  const given = new Set(conversation.messages.filter((m) => m.role === "tool").map((m) => m.tool_call_id));
  if (message.tool_calls.every((c) => given.has(c.id))) answer();
}

function messageView(message, index) {
  const who = element("div", { class: "who" }, message.role);
  const view = element("div", { class: `message ${message.role}${message.failed ? " failed" : ""}` }, who);
  if (message.role === "user") {
    const edit = element("button", { type: "button", "aria-label": `Edit message ${index + 1}` }, "Edit");
    edit.addEventListener("click", () => editFrom(index));
    who.append(edit);
  }
  if (message.role === "assistant" && index === conversation.messages.length - 1) {
    const again = element("button", { type: "button" }, "Again");
    again.addEventListener("click", () => {
      if (running) return;
      conversation.cut(index);
      answer();
    });
    who.append(again);
  }
  if (message.reasoning_content) {
    view.append(element("details", { open: !message.content }, element("summary", {}, "Reasoning"), message.reasoning_content));
  }
  view.append(element("div", {}, message.content ?? ""));
  for (const call of message.tool_calls ?? []) view.append(toolCallView(message, call));
  return view;
}

function render() {
  const log = byId("log");
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  log.replaceChildren(...conversation.messages.map(messageView));
  if (atEnd) log.scrollTop = log.scrollHeight;
}

// Only the last message changes while an answer comes, at most once a frame.
let drawing = false;
function renderLast() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    const log = byId("log");
    const last = conversation.messages.length - 1;
    if (last < 0 || !log.lastChild) return;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    log.lastChild.replaceWith(messageView(conversation.messages[last], last));
    if (atEnd) log.scrollTop = log.scrollHeight;
  });
}

function editFrom(index) {
  if (running) return;
  byId("input").value = conversation.messages[index].content;
  conversation.cut(index);
  render();
  byId("input").focus();
}

function setRunning(controller) {
  running = controller;
  byId("send").hidden = controller !== null;
  byId("stop").hidden = controller === null;
}

function sayDone(usage, beganMs, firstMs, reason) {
  const seconds = (performance.now() - beganMs) / 1000;
  const parts = [`${seconds.toFixed(1)} s`];
  if (firstMs) parts.unshift(`first token after ${Math.round(firstMs - beganMs)} ms`);
  if (usage) {
    parts.push(`${usage.prompt_tokens} tokens in, ${usage.completion_tokens} out`);
    const cached = usage.prompt_tokens_details?.cached_tokens;
    if (cached) parts.push(`${cached} from the cache`);
  }
  if (reason === "length") parts.push("cut at the most tokens");
  byId("status").textContent = parts.join(", ");
}

async function answer() {
  notice("");
  let body;
  try {
    body = requestBody();
  } catch (error) {
    notice(error.message);
    return;
  }
  const message = conversation.add({ role: "assistant", content: "" });
  const controller = new AbortController();
  setRunning(controller);
  render();
  byId("status").textContent = "waiting";
  const began = performance.now();
  let first = 0;
  let usage = null;
  let reason = null;
  try {
    for await (const chunk of stream("/v1/chat/completions", body, controller.signal)) {
      usage = chunk.usage ?? usage;
      const choice = chunk.choices[0];
      if (!choice) continue;
      reason = choice.finish_reason ?? reason;
      takeDelta(message, choice.delta);
      if (!first && (message.content || message.reasoning_content || message.tool_calls)) first = performance.now();
      renderLast();
    }
    sayDone(usage, began, first, reason);
  } catch (error) {
    if (controller.signal.aborted) {
      byId("status").textContent = "stopped";
    } else {
      notice(error.message);
      byId("status").textContent = "";
    }
    // A cut answer is a message of the conversation; an empty one is not.
    if (!message.content) message.failed = true;
  } finally {
    if (!message.content && message.tool_calls) message.content = null;
    setRunning(null);
    if (message.failed) conversation.messages.pop();
    render();
    byId("input").focus();
  }
}

function send(event) {
  event?.preventDefault();
  const input = byId("input");
  const text = input.value;
  if (running || !text.trim()) return;
  input.value = "";
  conversation.add({ role: "user", content: text });
  answer();
}

export function startChat() {
  byId("api-key").value = getKey();
  byId("api-key").addEventListener("change", (event) => setKey(event.target.value.trim()));
  byId("composer").addEventListener("submit", send);
  byId("parameters").addEventListener("submit", (event) => event.preventDefault());
  byId("stop").addEventListener("click", () => running?.abort());
  byId("clear").addEventListener("click", () => {
    running?.abort();
    conversation.cut(0);
    render();
    byId("status").textContent = "";
    byId("input").focus();
  });
  byId("input").addEventListener("keydown", (event) => {
    // A key that ends a composition (Japanese, Chinese) sends nothing.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") running?.abort();
  });
}

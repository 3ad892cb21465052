// A conversation as the API has it, without a page: messages, and an answer put together from deltas.

export class Conversation {
  constructor() {
    this.messages = []; // {role, content, reasoning?, tool_calls?, tool_call_id?, failed?}
  }

  add(message) {
    this.messages.push(message);
    return message;
  }

  // Forgets message `index` and all that follow.
  cut(index) {
    this.messages.length = index;
  }

  // What is sent: without what is only shown.
  request(system) {
    const sent = this.messages.filter((m) => !m.failed).map(({ failed, ...message }) => message);
    return system ? [{ role: "system", content: system }, ...sent] : sent;
  }
}

// Adds a chunk's delta to an assistant message.
export function takeDelta(message, delta) {
  if (delta.content) message.content += delta.content;
  const reasoning = delta.reasoning_content ?? delta.reasoning;
  if (reasoning) message.reasoning_content = (message.reasoning_content ?? "") + reasoning;
  for (const call of delta.tool_calls ?? []) {
    message.tool_calls ??= [];
    const known = (message.tool_calls[call.index] ??= {
      id: call.id, type: "function", function: { name: "", arguments: "" },
    });
    known.function.name += call.function?.name ?? "";
    known.function.arguments += call.function?.arguments ?? "";
  }
}

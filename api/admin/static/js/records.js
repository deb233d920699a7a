// A stream's records: which fields a way to look needs, and the live tail, which reads the same events as any program.
import { labelCells } from "./tables.js";
import { spellTime } from "./times.js";

const ROWS_MAX = 300;
const WAITING_MAX = 5000;
const AGAIN_MS = 2000;
const GAPS = {
  expired: "Records expired before they were read",
  failover: "The stores failed over and lost no acknowledged record",
  hole: "Offsets without records, which were lost or never written",
};

const form = document.querySelector(".seek");
const select = form?.querySelector("[data-seek]");
const showFields = () => {
  form.dataset.at = select.value;
  for (const place of form.querySelectorAll("[data-for]"))
    for (const field of place.querySelectorAll("input")) field.disabled = getComputedStyle(place).display === "none";
};
if (select) {
  select.addEventListener("change", showFields);
  showFields();
}

const tail = document.querySelector("[data-tail]");
if (tail) follow(tail);

// The lines of an event: `id:`, `event:` and `data:`; what else there is means nothing here.
async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const event = { name: "record", data: "" };
      for (const line of part.split("\n")) {
        if (line.startsWith("id: ")) event.id = line.slice(4);
        else if (line.startsWith("event: ")) event.name = line.slice(7);
        else if (line.startsWith("data: ")) event.data += line.slice(6);
      }
      yield event;
    }
  }
}

function follow(body) {
  const state = document.querySelector("[data-tail-state]");
  const pauseButton = document.querySelector("[data-tail-pause]");
  const text = body.dataset.text.toLowerCase();
  const waiting = [];
  let last = "";
  let shown = 0;
  let missed = 0;
  let paused = false;

  const say = (words) => {
    const place = state.querySelector("span");
    if (place.textContent !== words) place.textContent = words;
  };
  const sayHow = () => say(paused ? `Paused, ${waiting.length + missed} waiting` : `Live, ${shown} shown`);

  const put = (records) => {
    document.querySelector("[data-tail-empty]")?.remove();
    for (const record of records) body.prepend(rowOf(record, body.dataset));
    labelCells();
    shown += records.length;
    while (body.rows.length > ROWS_MAX) body.deleteRow(-1);
    sayHow();
  };

  const take = (record) => {
    if (text && !JSON.stringify(record).toLowerCase().includes(text)) return;
    if (!paused) return put([record]);
    if (waiting.push(record) > WAITING_MAX) missed += 1, waiting.shift();
    sayHow();
  };

  const read = async () => {
    const query = new URLSearchParams(last ? {} : { from: "latest" });
    if (body.dataset.key) query.append("key", body.dataset.key);
    for (const [name, term] of new URLSearchParams(body.dataset.query)) if (name !== "ns") query.append(name, term);
    const headers = { accept: "text/event-stream", "millstream-namespace": document.body.dataset.namespace };
    if (last) headers["last-event-id"] = last;
    const answer = await fetch(`${body.dataset.tail}?${query}`, { headers, credentials: "same-origin" });
    if (!answer.ok || answer.status === 204) {
      const told = answer.status === 204 ? {} : await answer.json();
      say(told.detail ?? "The shard is closed: read its child shards");
      return answer.status >= 500 || answer.status === 429;
    }
    sayHow();
    for await (const event of eventsOf(answer)) {
      if (event.id) last = event.id;
      if (event.name === "record" && event.data) take(JSON.parse(event.data));
      if (event.name === "gap") say(GAPS[JSON.parse(event.data).reason] ?? GAPS.hole);
    }
    return true;
  };

  const go = async () => {
    for (;;) {
      let again = true;
      try {
        again = await read();
      } catch {
        say("Connection lost; reconnecting");
      }
      if (!again) return;
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
  };

  pauseButton.addEventListener("click", () => {
    paused = !paused;
    pauseButton.setAttribute("aria-pressed", String(paused));
    pauseButton.querySelector("span").textContent = paused ? "Resume" : "Pause";
    if (paused) return sayHow();
    missed = 0;
    put(waiting.splice(0).slice(-ROWS_MAX));
  });
  document.querySelector("[data-tail-clear]").addEventListener("click", () => {
    body.replaceChildren();
    shown = 0;
    sayHow();
  });
  go();
}

// As `spelled_out` of api/admin/browsing/body_preview.py: what would change how the rest of a line reads is told by its number.
const MISLEADING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const spelled = (words) => words.replace(MISLEADING, (one) => `\u27e8U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);

const summaryOf = (record) => {
  if (record.data_base64 !== undefined) return `base64 ${record.data_base64.slice(0, 100)}`;
  const words = typeof record.data === "string" ? record.data : JSON.stringify(record.data);
  return words.length > 120 ? `${words.slice(0, 120)}…` : words;
};
const sizeOf = (record) => {
  if (record.data_base64 !== undefined) return Math.floor((record.data_base64.length * 3) / 4);
  return new TextEncoder().encode(typeof record.data === "string" ? record.data : JSON.stringify(record.data)).length;
};

// The value at a JSON Pointer, as `field_columns` of api/admin/browsing shows it.
const fieldOf = (record, pointer) => {
  let value = record.data;
  try {
    if (typeof value === "string") value = JSON.parse(value);
  } catch {
    return "–";
  }
  for (const token of pointer.split("/").slice(1)) value = Object(value)[token.replaceAll("~1", "/").replaceAll("~0", "~")];
  if (value === undefined) return "–";
  const words = typeof value === "string" ? value : JSON.stringify(value);
  return words.length > 80 ? `${words.slice(0, 80)}…` : words;
};

function rowOf(record, { open: base, columns }) {
  const row = document.createElement("tr");
  row.dataset.row = "";
  const cell = (words, className = "") => {
    const made = row.insertCell();
    made.className = className;
    made.textContent = words;
    return made;
  };
  const link = document.createElement("a");
  const at = new URL(base, location.href);
  for (const [name, value] of [["at", "offset"], ["shard", record.shard], ["offset", record.offset || ""], ["see", `${record.shard}:${record.offset}`]]) if (value !== "") at.searchParams.set(name, value);
  link.href = at.pathname + at.search;
  link.textContent = record.offset;
  cell(record.shard, "n");
  cell("", "n").append(link);
  cell(spellTime(Date.parse(record.arrival_time)), "nowrap");
  cell(spelled(record.key ?? "") || "–", "mono clip");
  cell(`${sizeOf(record)} B`, "n");
  cell(Object.keys(record.headers ?? {}).length + Object.keys(record.headers_base64 ?? {}).length, "n");
  const bdi = document.createElement("bdi");
  bdi.textContent = spelled(summaryOf(record));
  cell("", "mono clip wide").append(bdi);
  for (const pointer of columns.split(",").filter(Boolean)) cell(spelled(fieldOf(record, pointer)), "mono clip");
  return row;
}

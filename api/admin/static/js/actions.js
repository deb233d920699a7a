// Forms that call the REST API. A button opens a dialog, the dialog's form is the call, its answer is told in a line.
//
//   <form data-action data-method="POST" action="/v1/…" data-done="{purged} messages purged" data-then="/ui/queues">
//     <input name="per_second" data-type="number">         {"per_second": 5}; left out when empty
//     <input name="dead_letters.queue">                     {"dead_letters": {"queue": …}}
//     <input type="checkbox" name="messages" value="…">     the values that are ticked, as a list, with data-type="list"
//   <form data-action data-each="message" action="/v1/…/{message}">  a call for each value of that name
import { callApi } from "./api.js";
import { secondsOf } from "./durations.js";
import { refreshNow } from "./refresh.js";
import { clearSelection } from "./tables.js";

const EXPORT_LINES_MAX = 50_000;

export const toast = (text, bad = false) => {
  const line = document.createElement("div");
  line.className = bad ? "toast toast-bad" : "toast";
  line.textContent = text;
  document.getElementById("toasts").append(line);
  setTimeout(() => line.remove(), bad ? 10000 : 5000);
};

const linesOf = (field) => field.value.split("\n").map((line) => line.trim()).filter(Boolean);

const durationOf = (text) => {
  const seconds = secondsOf(text);
  if (Number.isNaN(seconds)) throw new Error(`“${text}” is not a duration: use 30s, 10m, 2h or 1d`);
  return seconds;
};

// `/customer=7`: that JSON value, or else text, at a JSON Pointer; `/customer`: any value.
const conditionOf = (line) => {
  const [path, ...rest] = line.split("=");
  if (rest.length === 0) return { path, exists: true };
  const value = rest.join("=");
  try {
    return { path, equal_to: JSON.parse(value) };
  } catch {
    return { path, equal_to: value };
  }
};

const offsetsOf = (text) => {
  if (!/^\d+\s*=\s*\d+(\s*,\s*\d+\s*=\s*\d+)*$/.test(text)) throw new Error(`“${text}” are not offsets: use 0=120, 1=98 for shards 0 and 1`);
  return Object.fromEntries([...text.matchAll(/(\d+)\s*=\s*(\d+)/g)].map(([, shard, offset]) => [shard, Number(offset)]));
};

// `queue:w1=2`: a member of a spread with its weight; `queue:w1`: with weight 1.
const memberOf = (line) => {
  const parts = /^(queue|stream|topic):([^=\s]+)(?:\s*=\s*(\d+))?$/.exec(line);
  if (!parts) throw new Error(`“${line}” is not a member: use queue:name, or queue:name=2 with a weight`);
  const [, kind, name, weight] = parts;
  return { [kind]: name, ...(weight && { weight: Number(weight) }) };
};

const READ = {
  conditions: (field) => {
    const lines = linesOf(field);
    return lines.length > 0 ? lines.map(conditionOf) : undefined;
  },
  offsets: (field) => (field.value.trim() === "" ? undefined : offsetsOf(field.value.trim())),
  duration: (field) => (field.value.trim() === "" ? undefined : durationOf(field.value.trim())),
  durations: (field) => field.value.split(/[\s,]+/).filter(Boolean).map(durationOf),
  number: (field) => (field.value.trim() === "" ? undefined : Number(field.value)),
  bool: (field) => (field.type === "checkbox" ? field.checked : field.value === "true"),
  json: (field) => (field.value.trim() === "" ? undefined : JSON.parse(field.value)),
  lines: (field) => {
    const lines = linesOf(field);
    return lines.length > 0 ? lines : undefined;
  },
  members: (field) => {
    const lines = linesOf(field);
    return lines.length > 0 ? lines.map(memberOf) : undefined;
  },
  line: (field) => {
    const lines = linesOf(field);
    return lines.length > 1 ? lines : lines[0];
  },
  pairs: (field) => Object.fromEntries(linesOf(field).map((line) => {
    const [key, ...rest] = line.split("=");
    return [key.trim(), rest.join("=").trim()];
  })),
  time: (field) => (field.value ? new Date(field.value).toISOString() : undefined),
  text: (field) => (field.value === "" ? undefined : field.value),
  body: (field) => {
    try {
      return JSON.parse(field.value);
    } catch {
      return field.value;
    }
  },
};

const put = (into, path, value) => {
  const steps = path.split(".");
  const last = steps.pop();
  let at = into;
  for (const step of steps) at = at[step] ??= {};
  at[last] = value;
};

const isChanged = (field) =>
  field.tagName === "SELECT" ? !field.selectedOptions[0]?.defaultSelected : field.value !== field.defaultValue;

// Of a form of settings only what is different: empty is null, and a pair that is gone is null too (JSON Merge Patch).
const changesOf = (form) => {
  const changes = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || !isChanged(field)) continue;
    const type = field.dataset.type ?? "text";
    let value = READ[type](field);
    if (field.hasAttribute("data-merge")) {
      const before = READ[type]({ value: field.defaultValue });
      for (const key of Object.keys(before)) if (!(key in value)) value[key] = null;
    }
    put(changes, field.name, value ?? null);
  }
  for (const field of form.querySelectorAll("[data-group]")) {
    const key = field.dataset.group;
    const group = [...form.querySelectorAll(`[data-group="${key}"]`)];
    if (key in changes && group.every((one) => one.value === "")) changes[key] = null;
  }
  return changes;
};

export const bodyOf = (form) => {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || field.hasAttribute("data-path") || field.closest("[hidden]")) continue;
    if (field.type === "radio" && !field.checked) continue;
    const type = field.dataset.type ?? "text";
    if (type === "list") {
      if (field.checked || field.type === "hidden") put(body, field.name, [...(body[field.name] ?? []), field.value]);
      continue;
    }
    let value;
    try {
      value = READ[type](field);
    } catch (error) {
      throw new Error(`${field.labels?.[0]?.textContent?.trim() ?? field.name}: ${error.message}`);
    }
    const isLeftOut = value === undefined || (field.hasAttribute("data-optional") && field.value.trim() === "");
    if (!isLeftOut) put(body, field.name, value);
  }
  return body;
};

const told = (text, answer, spell = String) => text.replace(/\{(\w+)\}/g, (_, name) => spell(answer[name] ?? ""));

/** What the service said, and where; nothing twice. */
const troubleOf = (error) => {
  const changes = error.told?.changes ?? [];
  if (changes.length) return [error.message, ...changes.map((one) => `${one.pointer.slice(1)} is ${JSON.stringify(one.before)}, not ${JSON.stringify(one.after)}`)].join(" · ");
  const faults = error.told?.errors ?? [];
  const where = (fault) => (fault.pointer ? `${fault.pointer}: ${fault.detail}` : fault.detail);
  if (faults.length === 1 && faults[0].detail === error.message) return where(faults[0]);
  return [error.message, ...faults.filter((fault) => !error.message.includes(fault.detail)).map(where)].join(" · ");
};

export const fail = (form, error) => {
  const place = form.querySelector(".trouble");
  const text = troubleOf(error);
  if (!place) return toast(text, true);
  place.textContent = text;
  place.hidden = false;
};

const call = async (form) => {
  const buttons = form.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  try {
    const wanted = form.dataset.body === "none" ? undefined : form.dataset.body === "changed" ? changesOf(form) : bodyOf(form);
    const said = Object.fromEntries(new FormData(form));
    const headers = form.dataset.ifMatch ? { "if-match": form.dataset.ifMatch } : "create" in form.dataset ? { "if-none-match": "*" } : {};
    const path = told(form.getAttribute("action"), said, encodeURIComponent);
    const answer = "pages" in form.dataset ? await callPages(form, path, wanted) : (await callApi(form.dataset.method, path, { body: wanted, headers })).told;
    form.closest("dialog")?.close();
    form.dispatchEvent(new CustomEvent("ms:done", { bubbles: true, detail: answer }));
    const reveal = form.querySelector("[data-reveal]");
    if (reveal) return void showOnce(document.getElementById(reveal.dataset.reveal), { ...said, ...answer });
    if (form.dataset.then) return void location.assign(told(form.dataset.then, { ...said, ...answer }, encodeURIComponent));
    if (form.dataset.done) toast(told(form.dataset.done, answer));
    if (form.hasAttribute("data-reload")) return void location.reload();
    refreshNow();
  } catch (error) {
    fail(form, error);
  } finally {
    for (const button of buttons) button.disabled = false;
    for (const input of form.querySelectorAll("[data-must]")) checkWord(input);
  }
};

// A call that does a part, and says where the next one continues: until there are no more. Numbers are summed.
const callPages = async (form, path, body) => {
  const sums = {};
  for (let cursor = ""; cursor !== null; ) {
    const { told: part } = await callApi(form.dataset.method, path, { body: { ...body, cursor } });
    for (const [name, value] of Object.entries(part)) if (typeof value === "number") sums[name] = (sums[name] ?? 0) + value;
    cursor = part.next_cursor;
    const place = form.querySelector("[data-preview-of]");
    if (place && cursor) place.textContent = `${told(form.dataset.done, sums)} …`;
  }
  return sums;
};

// A call of its own for each of the selected; what is done stays done where one fails.
const callEach = async (form) => {
  const values = new FormData(form).getAll(form.dataset.each);
  const buttons = form.querySelectorAll("button");
  for (const button of buttons) button.disabled = true;
  let [done, trouble] = [0, ""];
  for (const value of values) {
    try {
      await callApi(form.dataset.method, told(form.getAttribute("action"), { [form.dataset.each]: value }, encodeURIComponent));
      done += 1;
    } catch (error) {
      trouble = error.message;
    }
  }
  for (const button of buttons) button.disabled = false;
  form.closest("dialog")?.close();
  toast([told(form.dataset.done, { done, of: values.length }), trouble].filter(Boolean).join(". "), Boolean(trouble));
  clearSelection();
  refreshNow();
};

export const checkWord = (input) => {
  const button = input.form.querySelector(".buttons button:not([data-close])");
  button.disabled = input.value !== input.dataset.must;
};

// What an answer tells once: a dialog of its own, and the page anew after it.
const showOnce = (dialog, answer) => {
  for (const place of dialog.querySelectorAll("[data-show]")) place.textContent = answer[place.dataset.show] ?? "";
  dialog.addEventListener("close", () => {
    for (const place of dialog.querySelectorAll("[data-show]")) place.textContent = "";
    location.reload();
  }, { once: true });
  dialog.showModal();
};

// A list as a file: page after page, as the API gives it in lines.
const exportLines = async (button) => {
  button.disabled = true;
  const lines = [];
  try {
    for (let cursor = ""; ; ) {
      const joint = button.dataset.export.includes("?") ? "&" : "?";
      const { told: page } = await callApi("GET", button.dataset.export + (cursor ? `${joint}cursor=${encodeURIComponent(cursor)}` : ""));
      lines.push(...page.items.map((item) => JSON.stringify(item)));
      cursor = page.next_cursor;
      if (!cursor || lines.length >= EXPORT_LINES_MAX) break;
    }
    save(button.dataset.filename, lines);
  } catch (error) {
    toast(error.message, true);
  }
  button.disabled = false;
};

export const save = (name, lines) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines.map((line) => `${line}\n`).join("")], { type: "application/x-ndjson" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
};

const openDialog = (button) => {
  const dialog = document.getElementById(button.dataset.open);
  const form = dialog.querySelector("form");
  for (const [name, value] of Object.entries(button.dataset)) {
    if (!name.startsWith("set")) continue;
    const key = name.slice(3).toLowerCase();
    for (const place of dialog.querySelectorAll(`[data-show="${key}"]`)) place.textContent = value;
    for (const field of form?.querySelectorAll(`[name="${key}"]`) ?? []) field.value = value;
    for (const word of dialog.querySelectorAll(`[data-must-of="${key}"]`)) word.dataset.must = value;
  }
  const trouble = dialog.querySelector(".trouble");
  if (trouble) trouble.hidden = true;
  for (const input of dialog.querySelectorAll("[data-must]")) {
    input.value = "";
    checkWord(input);
  }
  dialog.dispatchEvent(new CustomEvent("ms:open", { bubbles: true, detail: { button } }));
  dialog.showModal();
};

// A link with a dialog's id as its fragment opens it, if the page offers it.
const openLinkedDialog = () => {
  const button = location.hash && document.querySelector(`[data-open="${CSS.escape(location.hash.slice(1))}"]`);
  if (button) openDialog(button);
};

const copyText = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied");
  } catch {
    toast("This browser blocks copying: select the text instead.", true);
  }
};

const logOut = async () => {
  await callApi("DELETE", "/v1/sessions");
  location.assign("/ui/login");
};

export const installActions = () => {
  addEventListener("load", openLinkedDialog);
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("[data-action]")) {
      event.preventDefault();
      if (form.dataset.each) callEach(form);
      else call(form);
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button, [data-open]");
    if (!button) return;
    if (button.dataset.open) openDialog(button);
    else if (button.hasAttribute("data-close")) button.closest("dialog").close();
    else if (button.hasAttribute("data-copy")) copyText(button.parentElement.querySelector("code, pre").textContent);
    else if (button.dataset.copyFrom) copyText(document.getElementById(button.dataset.copyFrom).textContent);
    else if (button.dataset.export) exportLines(button);
    else if (button.hasAttribute("data-logout")) logOut();
  });
  document.addEventListener("change", (event) => event.target.matches?.("[data-submits]") && event.target.form.requestSubmit());
  document.addEventListener("input", (event) => {
    if (event.target.dataset?.must) checkWord(event.target);
  });
};

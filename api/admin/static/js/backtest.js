// A match that is evaluated on the messages of a topic: how many it takes, and what differs from a route. A call evaluates
// the first messages, and a job all of them; `?job=` in the address shows that one.
import { bodyOf, fail } from "./actions.js";
import { callApi } from "./api.js";
import { spellTime } from "./times.js";

const LOOK_MS = 1000;
const OVER = new Set(["done", "failed", "cancelled"]);

const form = document.querySelector("form[data-backtest]");
const result = document.querySelector("[data-backtest-result]");
const summary = document.querySelector("[data-backtest-summary]");
const offer = document.querySelector("[data-backtest-offer]"); // none without the permission
const job = document.querySelector("[data-backtest-job]");
const cancel = job.querySelector("[data-backtest-cancel]");
const numbers = new Intl.NumberFormat("en");

const element = (tag, ...children) => {
  const made = document.createElement(tag);
  made.append(...children);
  return made;
};

const messageLink = (id) => {
  const link = element("a", id);
  link.href = result.dataset.path.replace("{id}", encodeURIComponent(id));
  link.className = "mono";
  return link;
};

const samplesOf = (title, ids) => (ids.length === 0 ? [] : [element("h3", title), element("ul", ...ids.map((id) => element("li", messageLink(id))))]);

const countsOf = (told) => {
  const list = element("dl");
  list.className = "kv";
  const rows = [["Evaluated", told.evaluated], ["Taken", told.matched], ["Gained", told.gained], ["Lost", told.lost]];
  for (const [word, count] of rows) if (count !== null) list.append(element("dt", word), element("dd", numbers.format(count)));
  return list;
};

const failedOf = (failed) => {
  const entries = Object.entries(failed);
  if (entries.length === 0) return [];
  const list = element("dl");
  list.className = "kv";
  for (const [path, count] of entries) list.append(element("dt", element("code", path)), element("dd", numbers.format(count)));
  return [element("h3", "Messages that fail a condition"), list];
};

const show = (told) => {
  const { samples } = told;
  document.querySelector("[data-backtest-none]").hidden = true;
  const kinds = told.gained === null ? samplesOf("Taken", samples.matched) : [...samplesOf("Gained: the route does not take", samples.gained), ...samplesOf("Lost: the route takes", samples.lost)];
  result.replaceChildren(countsOf(told), ...failedOf(told.failed_by_path), ...kinds);
  result.hidden = false;
};

const showAnswer = (told) => {
  summary.textContent = told.complete ? "all messages of the range" : `the first ${numbers.format(told.evaluated)} messages; there are more`;
  if (offer) offer.hidden = told.complete;
  show(told);
};

// ── The job that evaluates all messages ──

const timeOf = (time) => (time === null ? "" : spellTime(Date.parse(time)));

const showJob = (told) => {
  const { result: found } = told;
  const open = !OVER.has(told.state);
  const range = [timeOf(told.start_time) || "the earliest message", timeOf(told.end_time) || "the start of the job"];
  const waits = JSON.parse(job.dataset.waits)[told.waiting_for];
  summary.textContent = found.complete ? "all messages of the range" : `${told.state}: ${numbers.format(found.evaluated)} of ${numbers.format(told.messages)} messages`;
  const rows = [["Job", told.id], ["Match", element("code", JSON.stringify(told.match))], ["Compared with", told.compare_with], ["From", range[0]], ["Until", range[1]], ["State", waits && open ? `${told.state}: ${waits}` : told.state], ["Failure", told.failure]];
  job.querySelector("dl").replaceChildren(...rows.filter(([, value]) => value).flatMap(([word, value]) => [element("dt", word), element("dd", value)]));
  if (cancel) cancel.parentElement.hidden = !open;
  job.hidden = false;
  show(found);
};

let followed = "";

const follow = async (id) => {
  followed = id;
  const address = new URL(location.href);
  address.searchParams.set("job", id);
  history.replaceState(history.state, "", address);
  if (offer) offer.hidden = true;
  while (followed === id) {
    const { told } = await callApi("GET", `${form.getAttribute("action")}/jobs/${encodeURIComponent(id)}`);
    if (followed !== id) return;
    showJob(told);
    if (OVER.has(told.state)) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
};

const leaveJob = () => {
  followed = "";
  job.hidden = true;
  const address = new URL(location.href);
  address.searchParams.delete("job");
  history.replaceState(history.state, "", address);
};

const attempt = async (button, work) => {
  form.querySelector(".trouble").hidden = true;
  if (button) button.disabled = true;
  try {
    await work();
  } catch (error) {
    fail(form, error);
  } finally {
    if (button) button.disabled = false;
  }
};

form.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(form.querySelector("button"), async () => {
    const { told } = await callApi("POST", form.getAttribute("action"), { body: bodyOf(form) });
    leaveJob();
    showAnswer(told);
  });
});

offer?.querySelector("button").addEventListener("click", (event) =>
  attempt(event.target, async () => {
    const { messages_max: _, ...body } = bodyOf(form);
    const { told } = await callApi("POST", `${form.getAttribute("action")}/jobs`, { body });
    await follow(told.id);
  }),
);

cancel?.addEventListener("click", (event) => attempt(event.target, () => callApi("POST", `/v1/jobs/${encodeURIComponent(followed)}/cancel`)));

const asked = new URL(location.href).searchParams.get("job");
if (asked) attempt(null, () => follow(asked));

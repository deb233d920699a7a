// A match that is evaluated on the messages of a topic: how many it takes, and what differs from a route.
import { bodyOf, fail } from "./actions.js";
import { callApi } from "./api.js";

const form = document.querySelector("form[data-backtest]");
const result = document.querySelector("[data-backtest-result]");
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
  document.querySelector("[data-backtest-summary]").textContent = told.complete ? "all messages of the range" : `the first ${numbers.format(told.evaluated)} messages; there are more`;
  const kinds = told.gained === null ? samplesOf("Taken", samples.matched) : [...samplesOf("Gained: the route does not take", samples.gained), ...samplesOf("Lost: the route takes", samples.lost)];
  result.replaceChildren(countsOf(told), ...failedOf(told.failed_by_path), ...kinds);
  result.hidden = false;
};

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  form.querySelector(".trouble").hidden = true;
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    show((await callApi("POST", form.getAttribute("action"), { body: bodyOf(form) })).told);
  } catch (error) {
    fail(form, error);
  } finally {
    button.disabled = false;
  }
});

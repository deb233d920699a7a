// A message that is not published: which routes would take it, and the conditions that fail for the others.
import { bodyOf, fail } from "./actions.js";
import { callApi } from "./api.js";

const form = document.querySelector("form[data-explain]");
const list = document.querySelector("[data-explain-routes]");
const VALUES_MAX = 5;

const element = (tag, text, className = "") => {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = className;
  return made;
};

const copyOf = (selector) => document.querySelector(`template[${selector}]`).content.cloneNode(true);

const failedLine = ({ path, expected, actual }) => {
  const item = document.createElement("li");
  const values = actual.slice(0, VALUES_MAX).flatMap((value, index) => [...(index ? [", "] : []), element("code", JSON.stringify(value))]);
  item.append(element("code", path), actual.length ? " is " : " is missing", ...values);
  if (actual.length > VALUES_MAX) item.append(` and ${actual.length - VALUES_MAX} more`);
  item.append(element("span", ", expected ", "muted"), element("code", JSON.stringify(expected)));
  return item;
};

const labelOf = ({ queue, stream, topic }) => (queue ? `queue:${queue}` : stream ? `stream:${stream}` : `topic:${topic}`);

const rowOf = ({ route, matches, failed, member }) => {
  const row = copyOf("data-explain-row");
  const name = row.querySelector("a");
  name.textContent = route;
  name.href = list.dataset.path.replace("{route}", encodeURIComponent(route));
  row.querySelector("[data-verdict]").replaceWith(copyOf(matches ? "data-explain-yes" : "data-explain-no"));
  if (failed.length) {
    const reasons = element("ul", "", "failed");
    reasons.append(...failed.map(failedLine));
    row.querySelector("li").append(reasons);
  }
  if (member) row.querySelector("li").append(element("p", `Member ${labelOf(member)} gets it`, "muted"));
  return row;
};

const show = ({ routes, matches, complete }) => {
  document.querySelector("[data-explain-none]").hidden = routes.length > 0;
  document.querySelector("[data-explain-summary]").textContent = `${matches.length} of ${routes.length}${complete ? "" : " and more"} take it`;
  list.replaceChildren(...routes.map(rowOf));
};

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  form.querySelector(".trouble").hidden = true;
  try {
    show((await callApi("POST", form.getAttribute("action"), { body: { message: bodyOf(form) } })).told);
  } catch (error) {
    fail(form, error);
  }
});

// The dialog that publishes has what the form has.
document.addEventListener("ms:open", ({ target }) => {
  if (target.id !== "publish") return;
  for (const name of ["subject", "key", "headers", "body"]) {
    target.querySelector(`[name="${name}"]`).value = form.elements[name].value;
    const place = target.querySelector(`[data-copied="${name}"]`);
    if (place) place.textContent = form.elements[name].value || "–";
  }
});

// Settings that are changed in a form: what is different from what stands is shown before it is saved, and only that is sent.
const textOf = (field) => (field.tagName === "SELECT" ? (field.selectedOptions[0]?.textContent ?? "") : field.value.trim() || "none");
const wasOf = (field) => {
  if (field.tagName !== "SELECT") return field.defaultValue.trim() || "none";
  return [...field.options].find((option) => option.defaultSelected)?.textContent ?? "";
};

const changed = (form) => [...form.elements].filter((field) => field.name && !field.disabled && textOf(field) !== wasOf(field));

const line = (field) => {
  const item = document.createElement("li");
  const [label, before, after] = ["b", "del", "ins"].map((tag) => document.createElement(tag));
  label.textContent = field.labels[0].querySelector("span").firstChild.textContent.trim();
  before.textContent = wasOf(field);
  after.textContent = textOf(field);
  item.append(label, before, "→", after);
  return item;
};

const show = (form) => {
  const list = form.querySelector("[data-diff]");
  const fields = changed(form);
  form.querySelector(".changes").classList.toggle("pending", fields.length > 0);
  for (const button of form.querySelectorAll("[data-save]")) button.disabled = fields.length === 0;
  if (fields.length) return list.replaceChildren(...fields.map(line));
  const none = document.createElement("li");
  none.className = "muted";
  none.textContent = "No changes.";
  list.replaceChildren(none);
};

for (const form of document.querySelectorAll("form[data-settings]")) {
  form.addEventListener("input", () => show(form));
  form.addEventListener("reset", () => setTimeout(() => show(form)));
  show(form);
}

// What moves is asked for again every few seconds, while someone looks and nobody is in the middle of something; any page
// is once it did something.
const EVERY_MS = 5000;
const events = new EventTarget();

export const onRefreshed = (listener) => events.addEventListener("refreshed", listener);
const ask = (selector) => {
  const content = document.querySelector(selector);
  if (content) window.htmx.trigger(content, "refresh");
  events.dispatchEvent(new Event("asked"));
};
export const refreshNow = () => ask("#live");
const refreshLive = () => ask("#live[data-live]");
export const announceRefresh = () => events.dispatchEvent(new Event("refreshed"));
export const onRefreshAsked = (listener) => events.addEventListener("asked", listener);

const isBusy = () => {
  if (document.hidden || document.documentElement.dataset.paused) return true;
  if (document.querySelector('dialog[open], details.menu[open], [data-expand][aria-expanded="true"]')) return true;
  const at = document.activeElement;
  if (at?.closest("#live form") || at?.matches("#live input:not([type=checkbox]), #live textarea, #live select")) return true;
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed);
};

const installPause = () => {
  const button = document.querySelector("[data-pause]");
  const show = (paused) => {
    if (paused) document.documentElement.dataset.paused = "1";
    else delete document.documentElement.dataset.paused;
    button.setAttribute("aria-pressed", String(paused));
  };
  button?.addEventListener("click", () => {
    const paused = !document.documentElement.dataset.paused;
    show(paused);
    if (!paused) refreshLive();
  });
};

export const installRefresh = () => {
  installPause();
  setInterval(() => isBusy() || refreshLive(), EVERY_MS);
  document.addEventListener("visibilitychange", () => isBusy() || refreshLive());
  document.addEventListener("htmx:after:swap", announceRefresh);
  // A session that ended is answered with the login page: go there, and come back.
  document.addEventListener("htmx:after:request", (event) => {
    if (event.detail.ctx?.response?.raw?.redirected) location.reload();
  });
};

// The login page: an API key is exchanged for a session, where the browser will keep one.
import { fail } from "./actions.js";
import { callApi } from "./api.js";

const PORTS = { "http:": "80", "https:": "443" };

const logIn = async (form) => {
  try {
    await callApi("POST", "/v1/sessions", { body: { api_key: form.elements.key.value.trim() } });
    await callApi("GET", "/v1/whoami").catch((error) => {
      throw error.status === 401 ? new Error("The key is valid, but the browser did not store the session cookie. Allow cookies for this address.") : error;
    });
    const next = new URLSearchParams(location.search).get("next") ?? "";
    location.assign(/^\/ui(?![^/?#])/.test(next) && !next.includes("\\") ? next : "/ui");
  } catch (error) {
    fail(form, error);
    form.elements.key.select();
  }
};

// The session's cookie is for https, or this machine: elsewhere the key would cross the network in the clear, for nothing.
const warn = (warning, form) => {
  const port = location.port || PORTS[location.protocol];
  warning.querySelector("code").textContent = `ssh -N -L 8080:127.0.0.1:${port} ${location.hostname.replace(/[[\]]/g, "")}`;
  warning.querySelector("a").href = `http://127.0.0.1:8080/ui/login${location.search}`;
  warning.hidden = false;
  form.hidden = true;
};

export const installLogin = () => {
  const form = document.querySelector("[data-login]");
  if (!form) return;
  if (!window.isSecureContext) warn(document.querySelector("[data-insecure]"), form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    logIn(form);
  });
};

// Calls of the REST API, as the pages make them: in the page's namespace, with the session's cookie, problems as errors.
export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || told.title || `The service returned status ${status}.`);
    this.status = status;
    this.told = told;
  }
}

const DIGITS_SAFE = 15;

// Numbers with more digits than a double has stay text, as the service wrote them, where the browser gives it.
const withAllDigits = (_, value, context) =>
  typeof value === "number" && context?.source?.replace(/[^0-9]/g, "").length > DIGITS_SAFE && context.source !== String(value)
    ? context.source
    : value;

// `exact`: the response has numbers of users.
export const callApi = async (method, path, { body, headers = {}, signal, exact = false } = {}) => {
  const namespace = document.body.dataset.namespace;
  const asked = { accept: "application/json", ...headers };
  if (namespace) asked["millstream-namespace"] = namespace;
  if (body !== undefined) asked["content-type"] ??= "application/json";
  const raw = body === undefined || typeof body === "string" || body instanceof Blob;
  let answer;
  try {
    answer = await fetch(path, { method, headers: asked, body: raw ? body : JSON.stringify(body), credentials: "same-origin", signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The service is unreachable. The outcome of this call is unknown." });
  }
  const text = await answer.text();
  const told = answer.headers.get("content-type")?.includes("json") && text ? JSON.parse(text, exact ? withAllDigits : undefined) : {};
  if (answer.status === 401 && namespace) location.reload(); // the session is over: the login page is next
  if (!answer.ok) throw new Problem(answer.status, told);
  return { told, etag: answer.headers.get("etag") };
};

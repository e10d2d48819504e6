// The public interface of the service, called with the session's cookie. The header keeps other sites from using it.

const BASE = '/api/vat-classification/v1';
const SESSION = '/console/session';
/** How long an answer is waited for. */
const PATIENCE_MS = 35_000;
/** When a read is tried again after the service did not answer. */
const AGAIN_MS = 1000;

/** What the service refused, with the reason that it gave. */
export class Refused extends Error {
  constructor(status, body) {
    super(body?.message ?? `HTTP ${status}`);
    this.status = status;
    this.body = body;
  }
}

/** Query parameters as text; lists become repeated parameters. */
export function query(parameters) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters ?? {})) {
    if (value === undefined || value === null || value === '') continue;
    for (const one of Array.isArray(value) ? value : [value]) pairs.append(name, one);
  }
  const text = pairs.toString();
  return text ? `?${text}` : '';
}

let signedOut = () => {};
let end;

/** What happens when the session has ended. */
export function onSignedOut(callback) { signedOut = callback; }

/** Whether the session that this page was shown in has ended. */
export const ended = () => end !== undefined;

/** Nothing more is sent for who was here: the next session may be somebody else's. */
function noteEnd(refusal) {
  end ??= refusal;
  signedOut();
}

/** JSON whose whole numbers stay exact: one that no number of the language holds, such as the id of a shop, stays a text. */
function exactly(text) {
  const parts = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
  const exact = (part) => (/^-?\d+$/.test(part) && !Number.isSafeInteger(Number(part)) ? `"${part}"` : part);
  return JSON.parse(/\d{16}/.test(text) ? text.replace(parts, exact) : text);
}

/** A body as JSON; the id of a shop is a number there, also where it was kept as a text. */
const written = (body) => JSON.stringify(body).replace(/"shopId":"(\d+)"/g, '"shopId":$1');

/** Sends a request and returns the answer's body. Reads are tried again once when the service was away for a moment. */
export async function call(method, path, { parameters, body, signal, type, key } = {}) {
  if (end) throw end;
  const url = BASE + path + query(parameters);
  const headers = { 'X-Console': '1', ...(key ? { 'Idempotency-Key': key } : {}) };
  if (body !== undefined) headers['Content-Type'] = type ?? 'application/json';
  const send = () => fetch(url, {
    method, headers, signal: signal ?? AbortSignal.timeout(PATIENCE_MS), credentials: 'same-origin', redirect: 'error',
    body: body === undefined || type ? body : written(body),
  });
  let response;
  try {
    response = await send();
  } catch (error) {
    if (signal?.aborted || method !== 'GET') throw error;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    response = await send();
  }
  const text = await response.text();
  let answer;
  try { answer = text ? exactly(text) : undefined; } catch { answer = undefined; }
  if (response.ok) return answer;
  const refusal = new Refused(response.status, answer);
  if (response.status === 401) noteEnd(refusal);
  throw refusal;
}

/**
 * A picture as the address of its own bytes. The page's policy lets that be shown, and unlike an <img> that names its place, the
 * request proves where it comes from by our header: headers of the browser's own are sent to secure origins only.
 */
export async function picture(url) {
  const { pathname, search } = new URL(url, location.href);
  const response = await fetch(pathname + search, { headers: { 'X-Console': '1' }, signal: AbortSignal.timeout(PATIENCE_MS), credentials: 'same-origin', redirect: 'error' });
  if (!response.ok) throw new Refused(response.status);
  const reader = new FileReader();
  const read = new Promise((resolve, reject) => { reader.onload = () => resolve(reader.result); reader.onerror = () => reject(reader.error); });
  reader.readAsDataURL(await response.blob());
  return read;
}

/** Sends a file and hands over each line of JSON of the answer as it comes. It takes as long as it takes; `signal` ends it. */
export async function lines(path, { parameters, body, signal, onLine }) {
  const headers = { 'X-Console': '1', Accept: 'application/x-ndjson', 'Content-Type': 'application/octet-stream' };
  const response = await fetch(BASE + path + query(parameters), { method: 'POST', headers, body, signal, credentials: 'same-origin', redirect: 'error' });
  if (!response.ok) {
    const refusal = new Refused(response.status, await response.json().catch(() => undefined));
    if (response.status === 401) noteEnd(refusal);
    throw refusal;
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const whole = (rest + part.value).split('\n');
    rest = whole.pop();
    for (const line of whole) if (line.trim()) onLine(JSON.parse(line));
  }
  if (rest.trim()) onLine(JSON.parse(rest));
}

export const get = (path, parameters, options) => call('GET', path, { parameters, ...options });
export const post = (path, body, options) => call('POST', path, { body, ...options });

async function session(method, body) {
  const headers = { 'X-Console': '1', ...(body ? { 'Content-Type': 'application/json' } : {}) };
  const response = await fetch(SESSION, { method, credentials: 'same-origin', headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(PATIENCE_MS) });
  const answer = await response.json().catch(() => undefined);
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

/** Begins a session; the token goes into a cookie that scripts cannot read. */
export const signIn = (token) => session('POST', { token });

/** Who has signed in: `{user, level}`. */
export const whoAmI = () => session('GET').catch((error) => {
  if (error.status === 401) end ??= error;
  throw error;
});

/** Ends the session. */
export const signOut = () => session('DELETE');

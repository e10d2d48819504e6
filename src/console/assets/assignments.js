// Assignments as the pages use them: lists with their filters, actions that do not make the page wait, and their undoing.

import { Refused, call, get, post } from './api.js';
import { announce, toast } from './dom.js';
import { number, t } from './words.js';

/** Filters of a list, as the address carries them. */
export const FILTERS = ['assignmentStatus', 'sort', 'productClass', 'confidenceFrom', 'confidenceTo', 'labels', 'reviewNeeded', 'strategy', 'autoAssignment', 'updatedFrom', 'updatedTo', 'shopId', 'filterCriteria', 'productIds'];

/** The filters of an address; `REJECTED`, `UNASSIGNED` and `ASSIGNED` wait for a person. */
export function filtersOf(parameters, defaults = {}) {
  const filters = { assignmentStatus: 'UNASSIGNED,REJECTED,ASSIGNED', ...defaults };
  for (const name of FILTERS) if (parameters.get(name)) filters[name] = parameters.get(name);
  return filters;
}

/** A page of a list. */
export const page = (taxonomy, parameters, signal) => get(`/assignments/${taxonomy}`, parameters, { signal });

/** Where the next page begins; undefined behind the last. */
export const cursorOf = (answer) => (answer.links.next ? new URL(answer.links.next).searchParams.get('cursor') : undefined);

/** Product ids as a filter: one alone would be split at its commas, so that it is said twice. */
export const ids = (products) => (products.length === 1 ? [products[0], products[0]] : products);

/** The version that an action must name. */
export const version = (item) => item.subscribedPlatformServices.vatRules.assignmentVersion;

/** How an assignment is told apart. */
export const key = (item) => `${item.shopId ?? 0} ${item.productId}`;

/** The class that a candidate stands for: the one in force with its segment where it is that one. */
export function classOf(item, candidate) {
  return item.productClassCode === candidate.productClassCode && item.productClass ? item.productClass : `${candidate.productClassCode}-00-000`;
}

const AT_ONCE = 1000;
const RETRY_MS = 1500;
const MAX_RETRIES = 200;
const AWAY = [408, 429, 502, 503, 504];
/** How often a decision is sent again because auto-assignment has moved the version. */
const MAX_MOVED = 3;
const MAX_UNDOABLE = 200;
const undoable = [];
const busy = new Map();
const running = new Set();

/** Whether something that was decided is not stored yet. */
export const unstored = () => running.size > 0;

/** Counts what is being stored until it is through; what fails, or resolves with false, is not stored. */
export function storing(work) {
  running.add(work);
  const through = () => running.delete(work);
  work.then(through, through);
  return work;
}

/** Waits until nothing is being stored any more. Resolves with whether all of it is stored. */
export async function settled() {
  let all = true;
  while (running.size > 0) {
    const ends = await Promise.allSettled(running);
    all &&= ends.every((one) => one.status === 'fulfilled' && one.value !== false);
  }
  return all;
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const random = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
const named = (items) => (items.length === 1 ? items[0].productId : `${number(items.length)} ${t('products')}`);

/** Sends until there is an answer: while the service is away, what was decided waits. */
async function insist(send) {
  let told;
  for (let attempt = 0; ; attempt += 1) {
    try {
      const answer = await send();
      if (told) { told.remove(); toast(t('back')); }
      return answer;
    } catch (error) {
      const away = !(error instanceof Refused) || AWAY.includes(error.status);
      const running = error.status === 409 && error.body?.code === 'IDEMPOTENCY_KEY_IN_USE';
      if ((!away && !running) || attempt >= MAX_RETRIES) { told?.remove(); throw error; }
      if (away) told ??= toast(t('away'), { bad: true });
      await pause(RETRY_MS);
    }
  }
}

/** What an answer tells of the assignments, so that a decision can be followed by another. */
function remember(items, answer) {
  const stored = new Map(answer.products.map((one) => [one.assignmentUuid, one]));
  for (const item of items) {
    const one = stored.get(item.assignmentUuid);
    if (!one) continue;
    item.subscribedPlatformServices.vatRules.assignmentVersion = one.assignmentVersion.vatRules;
    item.assignmentStatus = one.assignmentStatus;
    item.productClassCode = one.productClassCode;
    item.productClass = one.productClass;
    item.strategy = one.assignmentStatus === 'UNASSIGNED' ? null : 'MANUAL';
  }
}

/**
 * Whether a decision still means what the reviewer saw although versions have moved: only auto-assignment has been there,
 * and where the class in force is approved, it is the same one. Takes the present versions then.
 */
async function onlyMachinesSince(taxonomy, action, items) {
  const answer = await page(taxonomy, { assignmentStatus: 'ALL', productIds: ids(items.map((item) => item.productId)), size: AT_ONCE });
  const present = new Map(answer.items.map((one) => [one.assignmentUuid, one]));
  const same = (item) => {
    const now = present.get(item.assignmentUuid);
    const untouched = version(now ?? item) === version(item);
    return now && (untouched || (now.strategy !== 'MANUAL' && now.assignmentStatus !== 'DENIED' && (action !== 'APPROVE' || now.productClass === item.productClass)));
  };
  if (!items.every(same)) return false;
  for (const item of items) item.subscribedPlatformServices.vatRules.assignmentVersion = version(present.get(item.assignmentUuid));
  return true;
}

async function store(taxonomy, action, items, { productClass, comment }) {
  const parameters = { assignmentAction: action, productClass: action === 'ASSIGN' ? productClass : undefined };
  for (let attempt = 0; ; attempt += 1) {
    const products = items.map((item) => ({ productId: item.productId, shopId: item.shopId, assignmentVersion: { vatRules: version(item) } }));
    const idempotency = random();
    try {
      const answer = await insist(() => call('PATCH', `/assignments/${taxonomy}`, { parameters, body: { products, comment }, key: idempotency }));
      remember(items, answer);
      return answer.actionId;
    } catch (error) {
      if (error.status !== 409 || attempt >= MAX_MOVED || !await onlyMachinesSince(taxonomy, action, items)) throw error;
    }
  }
}

/**
 * Acts in the background, on each assignment after what was asked for it before. Resolves with true once all is stored.
 * A refusal is told with its reason, given to `onRefused(error, items)`, and resolves with false.
 */
export const act = (taxonomy, action, items, options = {}) => storing(acted(taxonomy, action, items, options));

async function acted(taxonomy, action, items, { productClass, comment, onRefused }) {
  const before = items.map((item) => busy.get(item.assignmentUuid));
  const entry = { taxonomy, items, actions: [] };
  const run = async () => {
    await Promise.allSettled(before);
    for (let from = 0; from < items.length; from += AT_ONCE) {
      entry.actions.push(await store(taxonomy, action, items.slice(from, from + AT_ONCE), { productClass, comment }));
    }
  };
  entry.stored = run();
  undoable.push(entry);
  if (undoable.length > MAX_UNDOABLE) undoable.shift();
  for (const item of items) busy.set(item.assignmentUuid, entry.stored);
  try {
    await entry.stored;
    return true;
  } catch (error) {
    if (entry.actions.length === 0 && undoable.includes(entry)) undoable.splice(undoable.indexOf(entry), 1);
    toast(`${t('refused')}: ${named(items)}: ${error.message}`, { bad: true });
    await onRefused?.(error, items);
    return false;
  } finally {
    for (const item of items) if (busy.get(item.assignmentUuid) === entry.stored) busy.delete(item.assignmentUuid);
  }
}

/** Takes the last action in a taxonomy back, after it is stored. Resolves with what it was about, or undefined. */
export async function undo(taxonomy) {
  const at = undoable.findLastIndex((one) => one.taxonomy === taxonomy);
  if (at < 0) { announce(t('nothingToUndo')); toast(t('nothingToUndo')); return undefined; }
  const [last] = undoable.splice(at, 1);
  try {
    const left = await storing(last.stored.catch(() => {}).then(() => restored(last.actions)));
    const kept = left ? ` (${t('keptSince')}: ${number(left)})` : '';
    toast(`${t('undone')}: ${named(last.items)}${kept}`);
    return last;
  } catch (error) {
    undoable.push(last);
    toast(`${t('refused')}: ${error.message}`, { bad: true });
    return undefined;
  }
}

/** Takes an action back and waits for it. Resolves with how many assignments were left since somebody changed them. */
export const restore = (actionId) => storing(restored([actionId]));

async function restored(actionIds) {
  let left = 0;
  for (const id of actionIds) {
    const asked = random();
    const begun = await insist(() => post(`/assignments/actions/${id}/undo`, {}, { key: asked }));
    const done = await finished(begun);
    left += done.skipped + done.failed;
  }
  return left;
}

/** Waits until an action is through; `progress(state)` is told on the way. */
export async function finished(state, progress = () => {}) {
  let now = state;
  while (now.state === 'RUNNING') {
    progress(now);
    await pause(400);
    now = await insist(() => get(`/assignments/actions/${now.actionId}`));
  }
  progress(now);
  return now;
}

const WAIT_SECONDS = 25;
const LOOK_MS = 2000;

/**
 * Follows what others do until the returned function is called: `changed({productId, shopId, version, assignmentStatus})`.
 * Where the feed of changes cannot be waited for, the assignments of `watched()` are looked at instead.
 */
export function follow(taxonomy, watched, changed) {
  const stop = new AbortController();
  const look = async () => {
    const items = watched();
    if (items.length === 0) return;
    const answer = await page(taxonomy, { assignmentStatus: 'ALL', productIds: ids(items.map((item) => item.productId)), size: 100 }, stop.signal);
    for (const now of answer.items) {
      const one = items.find((item) => key(item) === key(now));
      if (one && version(now) > version(one)) await changed({ productId: now.productId, shopId: now.shopId, version: version(now), assignmentStatus: now.assignmentStatus });
    }
  };
  const run = async () => {
    let after = 'latest';
    let feed = true;
    while (!stop.signal.aborted) {
      try {
        if (feed) {
          const answer = await get('/changes', { after, taxonomy, wait: WAIT_SECONDS, size: 500 }, { signal: stop.signal });
          after = answer.next;
          for (const one of answer.items) if (one.type.startsWith('ASSIGNMENT')) await changed(one);
        } else {
          await look();
          await pause(LOOK_MS);
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error.status === 400) feed = false;
        else await pause(LOOK_MS);
      }
    }
  };
  run();
  return () => stop.abort();
}

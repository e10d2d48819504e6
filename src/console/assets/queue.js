// The queue: one assignment at a time, by keys. The next page is there before it is needed, and no action makes one wait.

import { call, get } from './api.js';
import { act, classOf, cursorOf, filtersOf, follow, key, page, undo, version } from './assignments.js';
import { announce, dialog, h, renew, show, toast } from './dom.js';
import { askAlike, askClass, askLabels, askText, candidates, classInForce, codes, nameOf, picture, productPage, shortRates, statusBadge, texts } from './parts.js';
import { plain } from './text.js';
import { number, percent, t } from './words.js';

/** So few at first that they are there at once; the others follow while one reads. */
const FIRST_PAGE = 6;
const PAGE = 50;
const FETCH_AHEAD = 20;
const WATCHED = 12;
/** So long a decision is not taken over one that somebody else has just made, or that has just come back: the key was meant for what stood there before. */
const SURPRISE_MS = 800;
/** Commands that only go on: their keys may be held. */
const MOVING = ['n', 'p'];
const DONE = { APPROVE: 'APPROVED', ASSIGN: 'APPROVED', REJECT: 'REJECTED', DENY: 'DENIED', UNASSIGN: 'UNASSIGNED', RECONFIRM: 'event RECONFIRM' };

/**
 * The lists that make up the queue, one after the other. What a person has decided comes only where its product has changed
 * since, or where the address asks for a status.
 */
function listsOf(parameters) {
  const filters = { sort: 'confidence', ...filtersOf(parameters) };
  if (parameters.has('assignmentStatus') || parameters.has('strategy')) return [filters];
  const unknown = { ...filters, assignmentStatus: 'UNASSIGNED' };
  const found = { ...filters, assignmentStatus: 'ASSIGNED,REJECTED', strategy: 'DESCRIPTION,CUSTOMS-CODE' };
  const again = { ...filters, assignmentStatus: 'ALL', reviewNeeded: 'true' };
  return filters.sort === 'confidence' ? [unknown, found, again] : [found, unknown, again];
}

export async function queue(main, { taxonomy, parameters }) {
  const all = listsOf(parameters);
  const lists = [...all];
  const items = [];
  const decided = new Map();
  const marks = new Set();
  let at = 0;
  let next;
  let fetching;
  let failed;
  let drawn;
  let looking;
  let count = 0;
  let total;
  let surprise = { place: '', at: -SURPRISE_MS };

  const item = () => items[at];
  const placeOf = (one) => items.findIndex((known) => key(known) === key(one));

  /** Fetches the next page, of the next list where one is through; there is never more than one on the way. */
  function more() {
    if (fetching || lists.length === 0) return fetching;
    failed = undefined;
    const begun = { ...lists[0], size: items.length || next ? PAGE : FIRST_PAGE, embed: ['PRODUCT', 'CANDIDATES', 'VAT_RATES'], cursor: next };
    fetching = page(taxonomy, begun).then((answer) => {
      const nothing = !item();
      items.push(...answer.items.filter((one) => placeOf(one) < 0));
      next = cursorOf(answer);
      if (!next) lists.shift();
      fetching = undefined;
      if (nothing && !item() && lists.length > 0) return more();
      if (nothing) draw();
      return undefined;
    }).catch((error) => {
      fetching = undefined;
      failed = error;
      if (item()) toast(error.message, { bad: true });
      else draw();
    });
    return fetching;
  }

  async function countAll() {
    try {
      const counted = await Promise.all(all.map((one) => page(taxonomy, { ...one, size: 1, count: true })));
      total = counted.reduce((sum, answer) => sum + answer.total, 0);
      tell();
    } catch (error) { toast(error.message, { bad: true }); }
  }

  const body = h('div', { class: 'review' });
  const counter = h('p', { class: 'hint place' });
  const bar = h('div', { class: 'keys', role: 'toolbar', 'aria-label': t('keys') });
  show(main, h('h1', { class: 'unseen' }, t('queue')), counter, body, bar);

  function tell() {
    show(counter, total !== undefined && h('span', {}, `${number(Math.min(at + 1, total))} ${t('of')} ${number(total)}`), h('span', { id: 'decided' }, `${number(count)} ${t('decisions')}`),
      marks.size > 0 && h('strong', {}, `${number(marks.size)} ${t('selected')}`));
  }

  function again() {
    more();
    if (total === undefined) countAll();
    draw();
  }

  /** What stands where no product is. */
  function nobody() {
    if (!failed) return h('p', { class: 'empty card' }, fetching ? t('loading') : t('done'));
    return h('div', { class: 'empty card' }, h('p', { class: 'fault', role: 'alert' }, failed.message), h('button', { type: 'button', onclick: again }, t('again')));
  }

  /** Marks the words that spoke for a candidate. */
  function look(candidate) {
    if (looking === candidate.productClassCode) return;
    looking = candidate.productClassCode;
    draw();
  }

  /** What is shown of a product and may change while it is: each part is made anew only when it has. */
  function partsOf(one) {
    const looked = one.candidates?.find((candidate) => candidate.productClassCode === looking) ?? one.candidates?.[0];
    const about = h('div', { class: 'about' }, statusBadge(one), classInForce(one),
      one.confidence !== undefined && h('span', {}, `${t('confidence')} ${percent(one.confidence)}`),
      one.reviewNeeded && h('span', { class: 'badge rejected' }, t('changed')), one.labels.map((label) => h('span', { class: 'label' }, plain(label))),
      marks.has(key(one)) && h('span', { class: 'badge assigned' }, `☑ ${t('selected')}`), decided.has(key(one)) && h('span', { class: 'badge approved', id: 'fate' }, `→ ${decided.get(key(one))}`),
      h('a', { href: productPage(taxonomy, one.assignmentUuid) }, t('why')), h('small', {}, plain(one.productId)));
    return [about, texts(one, looked?.evidence), h('div', {}, codes(one)), candidates(one, { chosen: take, looked: look }), h('div', {}, shortRates(one))];
  }

  function draw() {
    tell();
    const one = item();
    const stays = drawn && one && drawn.of === key(one);
    if (!stays) looking = undefined;
    if (!one) {
      drawn = undefined;
      show(body, nobody());
      return;
    }
    const parts = partsOf(one);
    if (stays) {
      drawn.parts = parts.map((part, place) => renew(drawn.parts[place], part));
      return;
    }
    drawn = { of: key(one), parts };
    const [about, said, given, list, rates] = parts;
    show(body, h('article', { class: 'card', 'aria-label': nameOf(one) }, about, picture(one), said, given),
      h('section', { class: 'card', 'aria-label': t('candidates') }, h('h2', {}, t('candidates')), list, rates));
  }

  async function move(by) {
    at = Math.min(Math.max(0, at + by), items.length);
    if (items.length - at < FETCH_AHEAD) more();
    draw();
    if (!item() && fetching) { await fetching; draw(); }
    if (item()) announce(`${nameOf(item())}. ${t(item().assignmentStatus)}. ${item().productClassCode ?? ''}`);
  }

  /** Decides over what is selected, or over the one that is shown, and goes on without waiting. */
  async function decide(action, options = {}, others = []) {
    const wasMarked = marks.size > 0;
    const chosen = [...(wasMarked ? items.filter((one) => marks.has(key(one))) : [item()].filter(Boolean)), ...others];
    if (chosen.length === 0) return;
    if (!wasMarked && surprise.place === key(item()) && performance.now() - surprise.at < SURPRISE_MS) return;
    for (const one of chosen) decided.set(key(one), t(DONE[action]));
    count += chosen.length;
    marks.clear();
    const stored = act(taxonomy, action, chosen, { ...options, onRefused: (error, refused) => comeBack(error, refused) });
    move(wasMarked ? 0 : 1);
    if (!await stored) return;
    for (const one of chosen) if (decided.has(key(one))) decided.set(key(one), t(one.assignmentStatus));
    announce(`${number(chosen.length)} ${t('decisions')}`);
  }

  /** A refused decision comes back to its place, with the present state. */
  async function comeBack(error, refused) {
    count -= refused.length;
    for (const one of refused) decided.delete(key(one));
    if (error.status === 409) toast(t('versionStale'));
    await Promise.all(refused.map(reload));
    for (const one of refused) {
      const now = items[placeOf(one)];
      if (error.status === 409 && now?.strategy === 'MANUAL' && !now.reviewNeeded) decided.set(key(now), t(now.assignmentStatus));
    }
    const place = placeOf(refused[0]);
    if (place >= 0) at = place;
    surprise = { place: key(refused[0]), at: performance.now() };
    draw();
  }

  async function reload(one) {
    const fresh = await get(`/assignments/${taxonomy}/${one.assignmentUuid}`, { embed: 'CANDIDATES' }).catch(() => undefined);
    const place = placeOf(one);
    if (!fresh || place < 0) return;
    const { vatRates, product } = items[place];
    // Fields that are gone, such as the class of what is no longer assigned, go here too.
    items[place] = { product, ...fresh, vatRates: fresh.productClass === items[place].productClass ? vatRates : undefined };
  }

  const take = (candidate) => decide('ASSIGN', { productClass: classOf(item(), candidate) });

  /** The class that the one shown has, or else the best candidate's. */
  const proposed = (one) => one.productClass ?? (one.candidates?.[0] ? classOf(one, one.candidates[0]) : undefined);

  /** What stands is right: an assigned class is approved; one that does not decide the rates, or the best candidate, is assigned. */
  function approve(options = {}) {
    const one = item();
    if (!one) return;
    const productClass = proposed(one);
    if (marks.size === 0 && !['ASSIGNED', 'APPROVED'].includes(one.assignmentStatus) && productClass) decide('ASSIGN', { ...options, productClass });
    else decide('APPROVE', options);
  }

  async function withComment(title, run) {
    if (!item()) return;
    const comment = await askText(title, t('comment'), { required: true });
    if (comment) run({ comment });
  }

  async function label() {
    const one = item();
    if (!one) return;
    const labels = await askLabels(one.labels);
    if (!labels) return;
    const change = async (method, changed) => changed.length && call(method, '/assignments', { body: { assignmentUuids: [one.assignmentUuid], labels: changed } });
    try {
      await change('PUT', labels.filter((name) => !one.labels.includes(name)));
      await change('DELETE', one.labels.filter((name) => !labels.includes(name)));
      one.labels = labels;
    } catch (error) { toast(error.message, { bad: true }); }
    draw();
  }

  async function alike() {
    const one = item();
    const productClass = one && proposed(one);
    if (!productClass) return;
    try {
      const others = await askAlike(taxonomy, one, productClass);
      if (others) decide('ASSIGN', { productClass }, others);
    } catch (error) { toast(error.message, { bad: true }); }
  }

  async function takeBack() {
    const undone = await undo(taxonomy);
    if (!undone) return;
    count = Math.max(0, count - undone.items.length);
    for (const one of undone.items) decided.delete(key(one));
    await Promise.all(undone.items.slice(0, PAGE).map(reload));
    const place = placeOf(undone.items[0]);
    if (place >= 0) at = place;
    draw();
  }

  function select() {
    const one = item();
    if (!one) return;
    if (!marks.delete(key(one))) marks.add(key(one));
    move(1);
  }

  const search = async () => { const found = item() && await askClass(taxonomy, t('searchClass')); if (found) decide('ASSIGN', { productClass: found }); };

  // Key, what the button says, what the list of keys says, what it does.
  const commands = [
    ['a', 'approve', 'approve', () => approve()], ['s', 'classKey', 'searchClass', search], ['r', 'reject', 'reject', () => decide('REJECT')],
    ['d', 'deny', 'deny', () => withComment(t('deny'), (options) => decide('DENY', options))], ['l', 'label', 'label', label],
    ['c', 'commentKey', 'approveWith', () => withComment(t('approveWith'), approve)], ['e', 'alikeKey', 'alike', alike],
    ['n', 'next', 'next', () => move(1)], ['p', 'previous', 'previous', () => move(-1)], ['x', 'select', 'select', select], ['z', 'undo', 'undo', takeBack], ['?', 'keys', 'keys', help],
  ];

  function help() {
    const known = [...commands.map(([name, , text]) => [name.toUpperCase(), t(text)]), ['1–9', t('candidates')]];
    return dialog(t('keys'), (finish) => h('div', {},
      h('dl', { class: 'key-list' }, known.map(([name, text]) => h('div', {}, h('dt', {}, h('kbd', {}, name)), h('dd', {}, text)))),
      h('button', { type: 'button', class: 'primary', autofocus: true, onclick: () => finish() }, t('ok'))));
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (/^(input|select|textarea)$/i.test(event.target.tagName)) return;
    const pressed = event.key.toLowerCase();
    const candidate = /^[1-9]$/.test(pressed) ? item()?.candidates?.[Number(pressed) - 1] : undefined;
    const command = commands.find(([name]) => name === pressed);
    if ((!candidate && !command) || (event.repeat && !MOVING.includes(pressed))) return;
    event.preventDefault();
    if (candidate) take(candidate);
    else command[3]();
  }

  /** Somebody else did something: what waits further down leaves the queue, and the one that is shown says so. */
  async function changed(change) {
    const one = items.find((known) => key(known) === key(change));
    if (!one || decided.has(key(one)) || change.version <= version(one)) return;
    await reload(one);
    // The reviewer has gone on meanwhile, perhaps to this very one.
    const place = placeOf(one);
    if (place < 0 || decided.has(key(one))) return;
    const shown = place === at;
    const byPerson = items[place].strategy === 'MANUAL' && !items[place].reviewNeeded;
    if (byPerson && shown) {
      decided.set(key(one), t(items[place].assignmentStatus));
      surprise = { place: key(one), at: performance.now() };
      toast(t('someoneElse'));
    } else if (byPerson && place > at) {
      items.splice(place, 1);
      total -= 1;
    }
    draw();
  }

  show(bar, commands.map(([name, text, title, run]) => h('button', { type: 'button', title: t(title), onclick: run }, h('kbd', {}, name.toUpperCase()), t(text))));
  document.addEventListener('keydown', onKey);
  const unfollow = follow(taxonomy, () => items.slice(at, at + WATCHED).filter((one) => !decided.has(key(one))), changed);
  countAll();
  const first = more();
  draw();
  await first;
  if (!failed) more();
  return () => { document.removeEventListener('keydown', onKey); unfollow(); };
}

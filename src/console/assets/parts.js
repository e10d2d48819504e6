// Parts that several pages show: a product's texts, its candidates, rates, history, and what is alike.

import { get, picture as fetched, post } from './api.js';
import { ids, key } from './assignments.js';
import { meter } from './charts.js';
import { dialog, h, show } from './dom.js';
import { marked, plain } from './text.js';
import { current, instant, number, percent, pick, t } from './words.js';

const LABELS = '/assignments/assignment-labels';
const NEW_LABEL_COLOR = '#4C6FE0';
const ORDER = ['de', 'deu', 'ger', 'en', 'eng'];

/** The languages of a product, those that the classifier reads first. */
function languages(product) {
  const place = (language) => { const at = ORDER.indexOf(language); return at < 0 ? ORDER.length : at; };
  return Object.entries(product?.languageAttributes ?? {}).sort(([a], [b]) => place(a) - place(b));
}

/** A name to call a product by, in the reader's language where there is one. */
export function nameOf(item) {
  const texts = languages(item.product);
  const own = texts.find(([language]) => language.startsWith(current()))?.[1]?.productName;
  return own ?? texts.map(([, one]) => one.productName).find(Boolean) ?? t('noName');
}

/** A status with its sign, so that colour is never the only difference. */
export function statusBadge(item) {
  const signs = { UNASSIGNED: '○', ASSIGNED: '●', APPROVED: '✓', REJECTED: '!', DENIED: '✕' };
  const pending = item.autoAssignment === 'PENDING' ? ` · ${t('PENDING')}` : '';
  return h('span', { class: `badge ${item.assignmentStatus.toLowerCase()}` }, `${signs[item.assignmentStatus] ?? ''} ${t(item.assignmentStatus)}${pending}`);
}

/** The class in force, with what it is called where a candidate's path tells. */
export function classInForce(item) {
  if (!item.productClass) return null;
  const steps = (item.candidates ?? []).flatMap((candidate) => [...(candidate.path ?? []), candidate]);
  const step = steps.find((one) => one.productClassCode === item.productClassCode);
  return [h('span', { class: 'code' }, item.productClass), step && h('span', {}, pick(step.labels))];
}

/** How an assignment's class was found, in words. */
export const foundBy = (item) => (item.strategy ? t(item.strategy) : undefined);

/** The address of the page of an assignment. */
export const productPage = (taxonomy, uuid) => `#/product/${encodeURIComponent(uuid)}?taxonomy=${taxonomy}`;

/** A product's texts, the words of a candidate marked in them. */
export function texts(item, words) {
  const product = item.product ?? {};
  const one = ([language, said]) => h('section', { class: 'texts', lang: language.slice(0, 2) },
    h('h2', {}, h('span', { class: 'language' }, language), ' ', said.productName ? marked(said.productName, words) : t('noName')),
    said.productDescription && h('p', { class: 'description' }, marked(said.productDescription, words)),
    said.productTags?.length > 0 && h('ul', { class: 'tags', 'aria-label': t('tags') }, said.productTags.map((tag) => h('li', {}, marked(tag, words)))));
  return h('div', {}, languages(product).map(one),
    product.manufacturerName && h('p', { class: 'hint' }, plain(product.manufacturerName)));
}

/** A product's picture, shown once it is there; undefined where it has none. */
export function picture(item) {
  const stored = item.product?.picture;
  if (!stored) return undefined;
  const image = h('img', { class: 'picture', alt: t('picture'), hidden: true });
  // Where it cannot be had, its alternative text is shown.
  fetched(stored.url).then((source) => { image.src = source; }, () => {}).then(() => { image.hidden = false; });
  return image;
}

/** Customs codes as given, and how they were read. */
export function codes(item) {
  const given = Object.entries(item.product?.customsCodes ?? {});
  if (given.length === 0) return null;
  const reason = item.customsCodeReason;
  const value = (code) => (typeof code === 'object' ? `${code.code} (${code.taxonomy})` : code);
  // Reasons name a field by its path in the product.
  const isAt = (path, field) => path?.split('.').includes(field);
  const against = (field) => reason?.conflicts?.find((conflict) => isAt(conflict.field, field));
  return h('section', {}, h('h2', {}, t('codes')),
    h('dl', { class: 'pairs' }, given.map(([field, code]) => [h('dt', {}, field),
      h('dd', {}, plain(value(code)), isAt(reason?.field, field) && h('span', { class: 'hint' }, ` → ${reason.productClassCode}`),
        against(field) && h('strong', { class: 'conflict' }, ` ${t('conflict')}: ${against(field).productClassCode}`))])));
}

/** The candidates; `chosen(candidate)` runs when one is taken, `looked(candidate)` when one is looked at. */
export function candidates(item, { chosen, looked } = {}) {
  const list = item.candidates ?? [];
  if (list.length === 0) return h('p', { class: 'hint' }, t('noCandidates'));
  const one = (candidate, at) => {
    const path = (candidate.path ?? []).slice(0, -1).map((step) => pick(step.labels)).join(' › ');
    const spoke = (candidate.evidence ?? []).slice(0, 6).map((evidence) => h('span', {}, evidence.decision ? `${t('decisionAlike')} ${percent(evidence.similarity)}` : plain(evidence.word)));
    const inForce = item.productClassCode === candidate.productClassCode;
    return h('li', {}, h('button', { type: 'button', value: candidate.productClassCode, class: inForce ? 'candidate chosen' : 'candidate', onclick: () => chosen?.(candidate), onfocus: () => looked?.(candidate), onmouseenter: () => looked?.(candidate) },
      h('kbd', {}, at < 9 ? at + 1 : '·'), h('span', { class: 'name' }, h('strong', {}, candidate.productClassCode), pick(candidate.labels)),
      h('span', { class: 'sure' }, meter(candidate.confidence), h('b', {}, percent(candidate.confidence))),
      path && h('small', { title: path }, path), spoke.length > 0 && h('span', { class: 'evidence' }, spoke)));
  };
  return h('ol', { class: 'candidates' }, list.map(one));
}

/** Rates in short: each with its countries. */
export function shortRates(item) {
  if (!item.vatRates?.length) return null;
  const one = ({ rate, countries }) => h('li', { class: rate === null ? 'open' : '' },
    h('strong', {}, rate === null ? t('notDecided') : `${number(rate)} %`), ' ', h('span', { title: countries.join(', ') }, countries.length > 14 ? `${countries.slice(0, 14).join(' ')} +${countries.length - 14}` : countries.join(' ')));
  return h('section', {}, h('h2', {}, t('rates')), h('ul', { class: 'rates' }, item.vatRates.map(one)));
}

/** Every country's rate with the paragraph. */
export function longRates(rates) {
  const row = (country) => {
    const rule = (one) => h('li', {}, `${one.rate === undefined || one.rate === null ? '?' : number(one.rate)} % · `, plain(one.goods), h('small', {}, plain(one.source)));
    return h('tr', { class: country.sufficient ? '' : 'open' }, h('th', { scope: 'row' }, country.country),
      h('td', { class: 'nowrap' }, country.rate === null || country.rate === undefined ? t('notDecided') : `${number(country.rate)} %`),
      h('td', {}, h('ul', { class: 'rules' }, (country.rates ?? []).map(rule))));
  };
  return h('div', { class: 'card scroll', tabindex: '0', role: 'region', 'aria-label': t('rates') }, h('table', {},
    h('thead', {}, h('tr', {}, ['country', 'rate', 'rule'].map((name) => h('th', { scope: 'col' }, t(name))))), h('tbody', {}, rates.map(row))));
}

/** What happened to an assignment. `takeBack(actionId)` runs when the last decision is to be taken back. */
export function history(events, takeBack) {
  const last = events.findLast((event) => event.assignmentStatus && event.action !== 'CREATE');
  const one = (event) => h('li', {}, h('time', { datetime: event.timestamp }, instant(event.timestamp)), h('strong', {}, event.actor), ' · ', t(`event ${event.action}`),
    event.productClassCode && [' → ', h('span', { class: 'code' }, event.productClass ?? event.productClassCode)], event.confidence !== undefined && ` ${percent(event.confidence)}`,
    event.labels && ` ${event.labels.join(', ')}`, event.comment && h('q', {}, plain(event.comment)),
    takeBack && event === last && event.actionId && [' ', h('button', { type: 'button', class: 'quiet', onclick: () => takeBack(event.actionId) }, t('takeBack'))]);
  return h('ol', { class: 'history' }, events.map(one));
}

const LOOK_AFTER_MS = 120;

/** Asks for a class: by code, label, or the words that shops use. Resolves with a class, or undefined. */
export function askClass(taxonomy, title) {
  return dialog(title, (finish) => {
    const results = h('ol', { class: 'found', 'aria-live': 'polite' });
    let turn = 0;
    let looked = Promise.resolve();
    const offer = (choices, taken) => show(results, choices.map((choice) => h('li', {}, h('button', { type: 'button', onclick: () => taken(choice) },
      h('span', { class: 'code' }, choice.value), ' ', pick(choice.labels), choice.path?.length > 1 && h('small', {}, choice.path.slice(0, -1).map((step) => pick(step.labels)).join(' › '))))),
    choices.length === 0 && h('li', { class: 'hint' }, t('nothing')));
    const take = (choice) => {
      turn += 1;
      const kinds = choice.segments.map((one) => ({ value: one.productClass, labels: one.labels }));
      if (kinds.length === 0) return finish(`${choice.value}-00-000`);
      offer([{ value: `${choice.value}-00-000`, labels: choice.labels }, ...kinds], (kind) => finish(kind.value));
      return results.querySelector('button').focus();
    };
    const look = async (event) => {
      const text = event.target.value.trim();
      const mine = ++turn;
      show(results);
      if (text.length < 2) return undefined;
      await new Promise((resolve) => setTimeout(resolve, LOOK_AFTER_MS));
      if (mine !== turn) return undefined;
      const query = /\p{L}/u.test(text) ? text : text.replace(/\D/g, '');
      const answer = await get(`/product-classes/${taxonomy}`, { query, size: 40 }).catch(() => ({ items: [] }));
      if (mine !== turn) return undefined;
      const usable = answer.items.filter((one) => one.productClassCode.length >= 4);
      return offer(usable.map((one) => ({ value: one.productClassCode, labels: one.labels, path: one.path, segments: one.segments ?? [] })), take);
    };
    /** Takes the first hit of what stands in the field now; where that is still looked for, once it is there. */
    const takeFirst = async () => {
      const mine = turn;
      await looked;
      if (mine === turn) results.querySelector('button')?.click();
    };
    const step = (event) => {
      const buttons = [...results.querySelectorAll('button')];
      const at = buttons.indexOf(document.activeElement);
      if (event.key === 'Enter' && at < 0) { event.preventDefault(); takeFirst(); }
      if (event.key === 'ArrowDown') { event.preventDefault(); buttons[at + 1]?.focus(); }
      if (event.key === 'ArrowUp') { event.preventDefault(); (buttons[at - 1] ?? field).focus(); }
    };
    const field = h('input', { id: 'class-query', type: 'text', autofocus: true, autocomplete: 'off', oninput: (event) => { looked = look(event); } });
    return h('form', { onsubmit: (event) => event.preventDefault(), onkeydown: step }, h('label', { for: 'class-query' }, t('searchClassHint')), field, results,
      h('div', { class: 'row' }, h('button', { type: 'button', onclick: () => finish(undefined) }, t('cancel'))));
  });
}

/** Asks for a line of text. */
export function askText(title, label, { required = false } = {}) {
  return dialog(title, (finish) => {
    const field = h('textarea', { id: 'asked', rows: 3, maxlength: 1000, required, autofocus: true });
    const submit = (event) => { event.preventDefault(); if (!required || field.value.trim()) finish(field.value.trim()); };
    const enter = (event) => { if (event.key === 'Enter' && !event.shiftKey) submit(event); };
    field.addEventListener('keydown', enter);
    return h('form', { onsubmit: submit }, h('label', { for: 'asked' }, label), field,
      h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary' }, t('ok')), h('button', { type: 'button', onclick: () => finish(undefined) }, t('cancel'))));
  });
}

/** Asks for labels to attach, of those that are defined, or a new one. Resolves with their names, or undefined. */
export async function askLabels(attached) {
  const { items } = await get(LABELS);
  return dialog(t('label'), (finish) => {
    const boxes = items.map((one, at) => h('li', {}, h('label', {}, h('input', { type: 'checkbox', value: one.label, checked: attached.includes(one.label), autofocus: at === 0 }), ' ', plain(one.label))));
    const list = h('ul', { class: 'choices' }, boxes);
    const field = h('input', { id: 'new-label', type: 'text', maxlength: 100, autofocus: boxes.length === 0 });
    const fault = h('p', { class: 'fault', role: 'alert' });
    const submit = async (event) => {
      event.preventDefault();
      const chosen = [...list.querySelectorAll('input')].filter((box) => box.checked).map((box) => box.value);
      const fresh = field.value.trim();
      try {
        if (fresh && !items.some((one) => one.label === fresh)) await post(LABELS, { label: fresh, color: NEW_LABEL_COLOR });
        finish([...new Set(fresh ? [...chosen, fresh] : chosen)]);
      } catch (error) { show(fault, error.message); }
    };
    return h('form', { onsubmit: submit }, list, h('label', { for: 'new-label' }, t('newLabel')), field, fault,
      h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary' }, t('ok')), h('button', { type: 'button', onclick: () => finish(undefined) }, t('cancel'))));
  });
}

/** The open assignments whose products are alike, most alike first, each with its similarity. */
async function alikeOf(taxonomy, item) {
  const alike = await get(`/assignments/${taxonomy}/${item.assignmentUuid}/alike`).catch((error) => { if (error.status !== 404) throw error; return { items: [] }; });
  const similarity = new Map(alike.items.map((one) => [key(one), one.similarity]));
  if (similarity.size === 0) return [];
  const present = await get(`/assignments/${taxonomy}`, { assignmentStatus: 'UNASSIGNED,REJECTED,ASSIGNED', productIds: ids(alike.items.map((one) => one.productId)), embed: 'PRODUCT', size: 1000 });
  const open = present.items.filter((one) => key(one) !== key(item) && similarity.has(key(one)) && one.strategy !== 'MANUAL');
  return open.map((one) => ({ one, similarity: similarity.get(key(one)) })).sort((a, b) => b.similarity - a.similarity);
}

/** Shows what is alike and asks which of it gets the same decision. Resolves with assignments, each with its version. */
export async function askAlike(taxonomy, item, decision) {
  const open = await alikeOf(taxonomy, item);
  return dialog(`${t('alike')}: ${decision}`, (finish) => {
    const boxes = open.map(({ one, similarity }, at) => h('li', {}, h('label', {}, h('input', { type: 'checkbox', checked: true, value: at, autofocus: at === 0 }), ' ', plain(nameOf(one)), ' ', h('small', {}, `${percent(similarity)} · ${one.productClassCode ?? t('UNASSIGNED')}`))));
    const list = h('ul', { class: 'choices' }, boxes.length ? boxes : h('li', { class: 'hint' }, t('alikeNone')));
    const submit = (event) => { event.preventDefault(); finish([...list.querySelectorAll('input:checked')].map((box) => open[Number(box.value)].one)); };
    return h('form', { onsubmit: submit }, h('p', {}, `${number(open.length)} ${t('products')}`), list,
      h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary', disabled: open.length === 0 }, t('applyAlike')), h('button', { type: 'button', onclick: () => finish(undefined) }, t('cancel'))));
  });
}

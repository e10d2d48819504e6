// filterCriteria built by clicking, with the JSON that the interface takes shown beside it.

import { h, show } from './dom.js';
import { t } from './words.js';

const FIELDS = ['productName', 'keywords', 'productTag', 'productId', 'countryOfOrigin'];
/** Fields that are texts of one language. */
const TEXTS = ['productName', 'productTag', 'keywords'];

export function search(main, { taxonomy, parameters, go }) {
  let criteria;
  try { criteria = JSON.parse(parameters.get('filterCriteria') ?? ''); } catch { criteria = undefined; }
  if (!Array.isArray(criteria) || criteria.length === 0) criteria = [{ languageKey: document.documentElement.lang, productName: '' }];
  const list = h('ol', { class: 'criteria' });
  const json = h('pre', { class: 'json' });

  const fieldOf = (one) => FIELDS.find((name) => name in one) ?? 'productName';
  const usable = () => criteria.filter((one) => String(one[fieldOf(one)] ?? '').trim());
  const tell = () => { json.textContent = JSON.stringify(usable(), null, 2); };

  function one(criterion, at) {
    // What is being typed in or chosen from stays in its place, whichever field is chosen.
    const rename = (event) => {
      const value = criterion[fieldOf(criterion)];
      delete criterion[fieldOf(criterion)];
      criterion[event.target.value] = value;
      fit();
      tell();
    };
    const short = h('input', { class: 'short', maxlength: 3, oninput: (event) => { criterion.languageKey = event.target.value; tell(); } });
    const language = h('label', {}, h('span', { class: 'unseen' }, t('language')), short);
    const fit = () => {
      language.hidden = !TEXTS.includes(fieldOf(criterion));
      if (language.hidden) delete criterion.languageKey;
      else criterion.languageKey ??= document.documentElement.lang;
      short.value = criterion.languageKey ?? '';
    };
    const remove = () => {
      criteria.splice(at, 1);
      if (criteria.length === 0) criteria.push({ languageKey: document.documentElement.lang, productName: '' });
      draw();
      list.children[Math.min(at, criteria.length - 1)].querySelector('button').focus();
    };
    fit();
    const logic = at < criteria.length - 1 && h('label', {}, h('span', { class: 'unseen' }, t('and')), h('select', { onchange: (event) => { criterion.operation = event.target.value; tell(); } },
      ['AND', 'OR'].map((operation) => h('option', { value: operation, selected: (criterion.operation ?? 'AND') === operation }, t(operation.toLowerCase())))));
    return h('li', {},
      h('label', {}, h('span', { class: 'unseen' }, t('field')), h('select', { onchange: rename }, FIELDS.map((known) => h('option', { value: known, selected: known === fieldOf(criterion) }, t(known))))), language,
      h('label', {}, h('span', { class: 'unseen' }, t('value')), h('input', { class: 'wide', value: criterion[fieldOf(criterion)] ?? '', oninput: (event) => { criterion[fieldOf(criterion)] = event.target.value; tell(); } })),
      h('button', { type: 'button', onclick: remove }, t('remove')), logic);
  }

  function draw() {
    show(list, criteria.map(one));
    tell();
  }

  const submit = (event) => {
    event.preventDefault();
    const chosen = usable();
    const next = new URLSearchParams({ taxonomy, assignmentStatus: 'ALL' });
    if (chosen.length) next.set('filterCriteria', JSON.stringify(chosen));
    go(`#/table?${next}`);
  };
  const add = () => { criteria.push({ languageKey: document.documentElement.lang, productName: '' }); draw(); };
  show(main, h('h1', {}, t('search')), h('div', { class: 'two' },
    h('form', { class: 'card', onsubmit: submit }, h('h2', {}, t('criteria')), list, h('p', { class: 'hint' }, t('criteriaHint')),
      h('div', { class: 'row' }, h('button', { type: 'button', onclick: add }, t('addCriterion')), h('button', { type: 'submit', class: 'primary' }, t('search')))),
    h('section', { class: 'card' }, h('h2', {}, t('json')), json)));
  draw();
}

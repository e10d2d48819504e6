// Product texts with the words that spoke for a class marked in them. Everything is text: nothing is parsed as markup.

import { h } from './dom.js';

const FOLDS = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' };
/** Letters of a word from which on its forms are recognised by their beginning, and letters that an ending may have. */
const STEM_FROM = 5;
const ENDING = 2;

function fold(word) {
  return word.normalize('NFKC').toLowerCase().replace(/[äöüß]/g, (letter) => FOLDS[letter]).normalize('NFD').replace(/\p{M}/gu, '');
}

/** Characters that turn or hide text are shown as their names, since a reviewer must see what is there. */
function visible(text) {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

/** The parts of evidence words, folded; figures and single letters say nothing alone. */
function parts(words) {
  const said = (words ?? []).flatMap(({ word }) => (word ? word.split(/[^\p{L}\p{N}]+/u) : []));
  return [...new Set(said.map(fold).filter((part) => part.length > 1 && /\p{L}/u.test(part)))];
}

/** Whether a word of a text is one of the evidence words, in another form or in a compound too. */
function speaks(word, wanted) {
  return wanted.some((one) => word === one || (one.length >= STEM_FROM && word.includes(one.slice(0, Math.max(STEM_FROM, one.length - ENDING)))));
}

/** A text as nodes, the evidence words of `words` (`[{word, weight}]`) marked where they stand. */
export function marked(text, words, limit = 3000) {
  const wanted = parts(words);
  const shown = text.length > limit ? `${text.slice(0, limit)}…` : text;
  const nodes = [];
  for (const part of shown.split(/([\p{L}\p{N}]+)/u)) {
    if (!part) continue;
    const folded = fold(part);
    nodes.push(/[\p{L}\p{N}]/u.test(part) && speaks(folded, wanted) ? h('mark', {}, part) : visible(part));
  }
  return h('bdi', { class: 'said' }, nodes);
}

/** A text as it is. */
export const plain = (text) => h('bdi', { class: 'said' }, visible(String(text ?? '')));

// How hits are ordered: pages that answer come before pages that list.
var Scorer = {
  score: (result) => {
    const [docname, , , , score] = result;
    if (docname.startsWith("questions/")) return score + 60;
    if (/^(choose|start|tutorials)\//.test(docname)) return score + 15;
    if (/^(results\/|changelog)/.test(docname)) return score - 15;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

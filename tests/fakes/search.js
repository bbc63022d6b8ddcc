// Asks what a browser's tab asks of the site's search: node search.js SITE <QUESTIONS
const fs = require("fs");
const [folder, workers] = [process.argv[2], "assets/javascripts/workers"];
let hear, answer;
globalThis.self = globalThis;
globalThis.addEventListener = (_, listener) => (hear = listener);
globalThis.postMessage = (message) => answer(message);
require(`${folder}/${workers}/${fs.readdirSync(`${folder}/${workers}`).find((name) => /^search.*js$/.test(name))}`);
const ask = (type, data) => new Promise((heard) => ((answer = heard), hear({ data: { type, data } })));

(async () => {
  const index = JSON.parse(fs.readFileSync(`${folder}/search/search_index.json`));
  await ask(0, { ...index, options: {} });
  for (const question of fs.readFileSync(0, "utf8").split("\n")) {
    const { items } = (await ask(2, question)).data;
    console.log(JSON.stringify(items.map((page) => page.map((hit) => hit.location))));
  }
})();

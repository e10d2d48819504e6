// Classifies texts: URL and TOKEN in the environment, texts as arguments. schema.d.ts is made by
// npx openapi-typescript $URL/openapi.json -o schema.d.ts
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const { URL: baseUrl, TOKEN } = process.env;
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${TOKEN}` } });
const texts = process.argv.slice(2);
const items = texts.map((productName) => ({ languageAttributes: { de: { productName } } }));
const { data, error } = await client.POST("/api/vat-classification/v1/classifications", { body: { taxonomy: "TARIC", items } });
if (error) throw new Error(error.message);
data.items.forEach(({ decision }, at) => console.log([texts[at], decision.assignmentStatus, decision.productClass ?? "-"].join("\t")));

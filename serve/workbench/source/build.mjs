// Builds src/ into the directory that is given; with --check compares the result with what is there.
// Files are stored compressed (the service sends them so), under names that hold a hash of their content.
import { build } from "esbuild";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";

const isCheck = process.argv[2] === "--check";
const target = process.argv[isCheck ? 3 : 2];
const LICENCES = new Set(["MIT", "ISC", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "0BSD"]);
const FIRST_LOAD_MAX = 400_000; // bytes, compressed

const common = {
    bundle: true,
    format: "esm",
    target: "es2022",
    minify: true,
    charset: "utf8",
    legalComments: "none", // the licences are a file of their own
    entryNames: "[name]-[hash]",
    outdir: "out",
    write: false,
    metafile: true,
    logLevel: "warning",
};
// Workers are files of their own, whose names the scripts have to know.
const worker = await build({ ...common, entryPoints: { forces: "src/ui/graph-forces.ts" } });
const nameOf = ({ path }) => path.slice(path.lastIndexOf("/") + 1);

const made = await build({
    ...common,
    define: { FORCES: JSON.stringify(`/workbench/assets/${nameOf(worker.outputFiles[0])}`) },
    entryPoints: { main: "src/main.tsx", style: "src/styles/main.css" },
    splitting: true,
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".png": "dataurl", ".svg": "dataurl" },
    chunkNames: "chunk-[hash]",
});

/** The packages that the result holds code of, with their licences. */
function licences() {
    const names = new Set();
    for (const output of [made, worker].flatMap(({ metafile }) => Object.values(metafile.outputs))) {
        for (const [path, { bytesInOutput }] of Object.entries(output.inputs)) {
            const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path);
            if (found && bytesInOutput > 0) names.add(found[1]);
        }
    }
    return [...names].sort().map((name) => {
        const folder = join("node_modules", name);
        const { version, license, homepage, repository } = JSON.parse(readFileSync(join(folder, "package.json")));
        if (!LICENCES.has(license)) throw new Error(`${name} has the licence ${license}, which is not permitted`);
        const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
        const address = homepage ?? repository?.url ?? repository ?? "";
        return { name, version, license, address: String(address).replace(/^git\+|\.git$/g, ""),
            text: file ? readFileSync(join(folder, file), "utf8").trim() : "" };
    });
}

const files = new Map([...made.outputFiles, ...worker.outputFiles].map((one) => [nameOf(one), one.text]));
const found = licences();
const listed = JSON.stringify(found);
const licenceFile = `licences-${createHash("sha256").update(listed).digest("hex").slice(0, 8).toUpperCase()}.json`;
files.set(licenceFile, listed);

const outputs = Object.entries(made.metafile.outputs).map(([path, one]) => [path.replace("out/", ""), one]);
const entry = outputs.find(([name]) => /^main-.*\.js$/.test(name));
const style = outputs.find(([name]) => /^style-.*\.css$/.test(name))[0];

/** The scripts that the entry imports before it runs. */
function firstLoad(name, seen = new Set()) {
    seen.add(name);
    const { imports } = outputs.find(([one]) => one === name)[1];
    for (const { path, kind } of imports) {
        const next = path.replace("out/", "");
        if (kind === "import-statement" && !seen.has(next)) firstLoad(next, seen);
    }
    return seen;
}
const scripts = [...firstLoad(entry[0])];
const size = (name) => gzipSync(files.get(name), { level: 9 }).length;
/** What the page that opens first needs beside the shell: the query page. */
const query = outputs.find(([, one]) => one.entryPoint === "src/pages/query/page.tsx")?.[0];
const first = new Set([...scripts, ...(query ? firstLoad(query) : []), style]);
const firstBytes = [...first].map(size).reduce((one, other) => one + other, 0);
if (firstBytes > FIRST_LOAD_MAX) throw new Error(`the first load is ${firstBytes} bytes, at most ${FIRST_LOAD_MAX}`);

const preloads = scripts.slice(1).map((name) => `<link rel="modulepreload" href="/workbench/assets/${name}">`);
const page = readFileSync("src/index.html", "utf8")
    .replace("<!--preload-->", preloads.join("\n"))
    .replaceAll("{main}", entry[0]).replaceAll("{style}", style).replaceAll("{licences}", licenceFile);

const wanted = new Map([...files].map(([name, text]) => [`${name}.gz`, Buffer.from(text)]));
wanted.set("index.html", Buffer.from(page));
const manifest = { entry: entry[0], style, licences: licenceFile, files: [...files.keys()].sort() };
wanted.set("manifest.json", Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));

if (isCheck) {
    const there = existsSync(target) ? readdirSync(target).filter((one) => !/\.py$|^__pycache__$/.test(one)) : [];
    const unpacked = (name) => {
        const bytes = readFileSync(join(target, name));
        return name.endsWith(".gz") ? gunzipSync(bytes) : bytes;
    };
    const wrong = [
        ...there.filter((name) => !wanted.has(name)).map((name) => `${name} is not built any more`),
        ...[...wanted].filter(([name]) => !there.includes(name)).map(([name]) => `${name} is missing`),
        ...[...wanted].filter(([name, bytes]) => there.includes(name) && !unpacked(name).equals(bytes))
            .map(([name]) => `${name} has another content`),
    ];
    if (wrong.length) {
        console.error(`serve/workbench/assets is not what its source builds; run scripts/workbench:\n  ${wrong.join("\n  ")}`);
        process.exit(1);
    }
} else {
    mkdirSync(target, { recursive: true });
    for (const name of readdirSync(target)) if (!/\.py$|^__pycache__$/.test(name)) rmSync(join(target, name));
    for (const [name, bytes] of wanted) {
        writeFileSync(join(target, name), name.endsWith(".gz") ? gzipSync(bytes, { level: 9 }) : bytes);
    }
    for (const name of [...files.keys()].sort((one, other) => size(other) - size(one)).slice(0, 12)) {
        console.log(`${String(size(name)).padStart(8)}  ${name}`);
    }
}
console.log(`${found.length} packages; first load ${firstBytes} bytes compressed`);

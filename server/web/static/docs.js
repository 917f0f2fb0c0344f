// studio/src/dom.ts
function e(e, t) {
	let n = document.getElementById(e);
	if (!(n instanceof t)) throw TypeError(`the page has no ${t.name} #${e}`);
	return n;
}
function t(t, n) {
	let r = e(t, HTMLElement);
	r.textContent !== n && (r.textContent = n);
}
// studio/src/docs.ts
function n(e, ...t) {
	let n = document.createElement(e);
	return n.append(...t), n;
}
function r(e) {
	return e.trim().split(/\n\s*\n/).map((e) => n("p", ...i(e)));
}
function i(e) {
	return e.split(/`+([^`]+)`+/).map((e, t) => t % 2 ? n("code", e) : e);
}
function a(e, t, r) {
	let i = n("tr", ...t.map((e) => n("th", e))), a = r.map((e) => n("tr", ...e.map((e) => n("td", e)))), o = n("div", n("table", n("thead", i), n("tbody", ...a)));
	return o.className = "scroll", o.tabIndex = 0, o.setAttribute("role", "group"), o.setAttribute("aria-label", e), [n("h3", e), o];
}
function o({ type: e, enum: t, minimum: n, maximum: r, default: i } = {}) {
	let a = t ? t.join(", ") : `${e}${s(n, r)}`;
	return i === void 0 ? a : `${a}; default ${i}`;
}
function s(e, t) {
	return e === void 0 && t === void 0 ? "" : `, ${e ?? ""} .. ${t ?? ""}`;
}
function c(e) {
	return Object.entries(e).filter(([, { example: e }]) => e !== void 0).flatMap(([e, { example: t }]) => {
		let r = n("pre", JSON.stringify(t));
		return r.tabIndex = 0, [n("h3", `Example, ${e}`), r];
	});
}
function l(e, t, i) {
	let s = n("span", t.toUpperCase());
	s.className = "method";
	let l = n("article", n("h2", s, n("code", e)), ...r(i.description ?? i.summary ?? ""));
	l.className = "panel";
	let { parameters: u = [], requestBody: d, responses: f } = i;
	if (u.length > 0) {
		let e = u.map(({ name: e, schema: t, description: r = "" }) => [
			n("code", e),
			o(t),
			r
		]);
		l.append(...a("Query", [
			"name",
			"legal values",
			"meaning"
		], e));
	}
	if (d) {
		let e = Object.keys(d.content).flatMap((e) => [n("code", e), " "]);
		l.append(n("h3", "Body, of Content-Type"), n("p", ...e), ...c(d.content));
	}
	let p = Object.entries(f).map(([e, { description: t, content: n = {} }]) => [
		e,
		t,
		Object.keys(n).join(", ")
	]);
	return l.append(...a("Answers", [
		"status",
		"meaning",
		"as"
	], p)), l;
}
async function u() {
	try {
		let { info: n, paths: i } = await (await fetch(new URL("openapi.json", document.baseURI))).json();
		t("model", `${n.version}, REST reference`), e("about", HTMLElement).replaceChildren(...r(n.description));
		let a = Object.entries(i).flatMap(([e, t]) => Object.entries(t).map(([t, n]) => l(e, t, n)));
		e("calls", HTMLElement).replaceChildren(...a);
	} catch (e) {
		t("about", `The description of the calls could not be read: ${e instanceof Error ? e.message : e}`);
	}
}
u();

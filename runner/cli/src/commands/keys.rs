//! `toolcell keys show`: the public key of the instance.

use crate::args::KeysShowArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reach::reach_any;
use crate::render;

/// The PEM on standard output, so that it can go into a file; its id on standard error.
pub(crate) async fn show(args: &KeysShowArgs) -> Result<Exit, Failure> {
    let client = reach_any(&args.reach).await?.client;
    let page = client.keys().await.map_err(Failure::of_client)?;
    if args.json {
        render::value(&page)?;
        return Ok(Exit::Ok);
    }
    for key in &page.keys {
        let vouched = if key.enrolled { "enrolled" } else { "not enrolled: nobody vouched for it yet" };
        render::say(&format!("key id {} ({}, {vouched})", key.keyid, key.purpose));
        render::out(key.pem.as_bytes())?;
    }
    Ok(Exit::Ok)
}

//! `toolcell tools`: what may be called.

use toolcell_types::ToolsPage;

use crate::args::ToolsArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reach::reach_exactly;
use crate::render;

/// Lists all, or shows one.
pub(crate) async fn tools(args: &ToolsArgs) -> Result<Exit, Failure> {
    let reached = reach_exactly(&args.start).await?;
    let page = reached.client.tools().await.map_err(|error| Failure::of_client(error).with_log(&reached))?;
    let Some(name) = &args.name else {
        if args.json {
            render::value(&page)?;
        } else {
            render::out(render::tools(&page).as_bytes())?;
        }
        return Ok(Exit::Ok);
    };
    let Some(tool) = page.tools.iter().find(|tool| tool.name == *name) else {
        let error = anyhow::anyhow!("no tool {name:?} that you may see");
        return Err(Failure::new(Exit::Failed, error, known(&page)));
    };
    if args.json {
        render::value(tool)?;
    } else {
        render::out(render::tool(tool).as_bytes())?;
    }
    Ok(Exit::Ok)
}

fn known(page: &ToolsPage) -> String {
    let names: Vec<&str> = page.tools.iter().map(|tool| tool.name.as_str()).collect();
    if names.is_empty() {
        "no tool is registered for you".to_owned()
    } else {
        format!("there are: {}", names.join(", "))
    }
}
